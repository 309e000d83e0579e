"""The summary in words, of traces that can be worked out by hand."""

from nbkit.trace.trace import Trace
from nbkit.views.report.summary import summary_statements
from nbkit.views.statements.statement import Link
from tests.support.fakes import fake_trace, make_memory, make_ops, make_trace, small_trace, timed_trace
from tests.views.report.told import told


def answers(trace: Trace) -> dict[str, list[str]]:
    """Question -> sentences."""
    return {one.question: told(one) for one in summary_statements(trace)}


def test_a_trace_of_ops() -> None:
    assert answers(small_trace(devices=["cpu", "sim:0"])) == {
        "What ran": ["6 ops in 2 modules of Net, on cpu, sim:0: forward 3, backward 2, optimizer 1."],
        # 62 + 40 + 8 + 5 + 3 + 2 = 120 us in aten ops.
        "Where the time went": [
            "Ops with most self time: aten.mm.default 51.7 %, aten.addmm.default 33.3 %, "
            "aten.threshold_backward.default 6.7 %.",
        ],
        "Left out": ["Nothing was skipped."],
        "Overhead of recording": ["About 64.0 µs of 160 µs (40.0 %)."],
        "Recorded": ["2026-01-02T03:04:05+00:00 with nbkit 0.1.0, torch 2.13.0, python 3.11.9."],
    }


def test_a_timed_trace_has_its_peak_of_memory() -> None:
    said = answers(timed_trace())
    assert said["Memory at its peak"] == [
        "2.50 KiB on cpu after 8.00 µs, in aten.mm.default; most of it, 80.0 %, by fc.",
        "train.py:7 made 2.00 KiB (80.0 %) of the peak.",
    ]


def test_a_peak_between_ops_is_said_to_be_outside_of_any() -> None:
    trace = timed_trace()
    (peak,) = answers(Trace({**trace.frames, "memory": make_memory((None, 3.0, 4096))}, trace.meta))[
        "Memory at its peak"
    ]
    assert peak.startswith("4.00 KiB on cpu after 3.00 µs, outside any op")


def test_links_lead_to_the_slowest_call() -> None:
    ops = make_ops({"self_time_us": 1.0}, {"self_time_us": 9.0}, {"op": "aten.mm.default", "self_time_us": 4.0})
    (where,) = (one for one in summary_statements(make_trace(ops)) if one.question == "Where the time went")
    links = [part for part in where.sentences[0] if isinstance(part, Link)]
    assert links == [Link("aten.add.Tensor", "op_table", 1), Link("aten.mm.default", "op_table", 2)]


def test_what_was_left_out_is_said() -> None:
    said = answers(small_trace(skipped={"sparse tensors": 3}, filtered_ops=2))
    assert said["Left out"] == ["skipped 3: sparse tensors", "left out by filters: 2 ops"]


def test_what_is_not_known_is_not_said() -> None:
    said = answers(Trace({"ops": make_ops({"op": "a"})}, {"complete": True}))
    assert said["What ran"] == ["1 op: forward 1."]
    assert not {"Overhead of recording", "Recorded", "Memory at its peak"} & set(said)


def test_a_large_trace_is_summed_up_in_the_same_few_sentences() -> None:
    assert {question: len(sentences) for question, sentences in answers(fake_trace(30_000)).items()} == {
        "What ran": 1, "Where the time went": 1, "Left out": 1,
        "Overhead of recording": 1, "Recorded": 1,
    }  # fmt: skip
