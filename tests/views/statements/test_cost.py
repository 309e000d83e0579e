"""What is said of a step's cost in words, in a brief and on the first screen of a report."""

import re
from html import unescape
from pathlib import Path

import pandas as pd
import pytest
import torch

import nbkit
from nbkit.views.statements.cost import cost_statements
from nbkit.views.statements.statement import words_text
from tests.support.costs import layers, with_times


def said(trace: nbkit.Trace) -> list[str]:
    return [words_text(words) for one in cost_statements(trace) for words in one.sentences]


def test_a_stranger_reads_the_peak_what_makes_it_up_and_what_computes() -> None:
    memory, lines, saved, flops = said(layers())
    assert memory.startswith("It needs 21.2 KiB on cpu at its peak, in aten.div.Tensor (optimizer): ")
    assert memory.endswith(
        "optimizer state 9.56 KiB (45.1 %), parameter 4.78 KiB (22.6 %), gradient 4.78 KiB (22.6 %)."
    )
    # The optimizer's state and what it makes at its peak, then gradients; parameters were there before.
    source = r"tests/support/costs\.py:\d+"
    assert re.fullmatch(rf"{source} made 11\.6 KiB \(54\.9 %\) of the peak, {source} 4\.25 KiB \(20\.1 %\)\.", lines)
    # The input and what each relu gives: 5 x 32 x 16 numbers.
    assert saved == "10.0 KiB are saved for the backward pass."
    passes, most = "forward 73.7 kFLOP, backward 131 kFLOP", "88.0 % in blocks.* and 64.0 % in aten.mm.default"
    assert flops == f"It computes 205 kFLOP ({passes}), {most}."


def test_what_several_passes_save_is_not_told_as_that_of_one() -> None:
    layer, x = torch.nn.Linear(16, 16), torch.ones(4, 16)

    def step() -> None:
        for _ in range(3):
            layer(x).relu().sum().backward()

    # In each pass what relu gives, 4 x 16 numbers; x is the same memory in all of them.
    assert "1.00 KiB are saved for 3 backward passes, in all." in said(nbkit.opcost().run(step))


def test_a_step_that_allocates_nothing_needs_most_from_the_start() -> None:
    weight = torch.ones(256)
    memory, *more = said(nbkit.opcost().run(lambda: weight.mul_(2)))
    assert not any("of the peak" in one for one in more)
    assert memory == "It needs 1.00 KiB on cpu from the start: input 1.00 KiB (100.0 %)."


def test_the_op_of_the_peak_is_a_link() -> None:
    link = next(part for part in cost_statements(layers())[0].sentences[0] if not isinstance(part, str))
    assert (link.widget, link.value) == ("op_table", nbkit.memory_peaks(layers().memory)["op_id"][0])


def test_the_predicted_time_is_said_with_what_bounds_it() -> None:
    trace = with_times(layers())
    (time,) = said(trace)[4:]
    whole = trace.costs["time_us"].sum()
    phases = {phase: of["time_us"].sum() for phase, of in trace.costs.groupby("phase")}
    assert time.startswith(f"Predicted time {whole:.0f} µs (")
    assert all(f"{phase} {time_us:.0f} µs" in time for phase, time_us in phases.items() if time_us >= 100)
    assert "launch bound" in time and "memory bound" in time


def test_a_device_is_named_and_whether_the_step_fits_is_said() -> None:
    device = {"name": "Tiny", "flops_per_s": {"float32": 1e9}, "bytes_per_s": 1e9}
    trace = with_times(layers())
    found = []
    for size in (20_480, 43_392):
        named = nbkit.Trace({}, {**trace.meta, "cost_device": {**device, "memory_bytes": size}})
        named.frames.update(trace.frames)
        found.append(said(named))
    assert found[0][1] == "It does not fit into the 20.0 KiB of Tiny: 1.19 KiB too much."
    assert found[1][1] == "It fits into the 42.4 KiB of Tiny: 50.0 % of it."
    assert " on Tiny (" in found[0][-1]


def test_ops_without_a_rule_are_named() -> None:
    trace = nbkit.Trace(layers().frames, {**layers().meta, "unknown_flops": {"mylib.twice.default": 3}})
    assert said(trace)[-1] == "FLOPs of 1 op are not known and not in it: mylib.twice.default."


def test_a_step_that_computes_nothing_and_a_trace_without_costs() -> None:
    trace = nbkit.opcost().run(lambda: pd.NA)
    assert said(trace) == [] == said(nbkit.Trace({})) and cost_statements(nbkit.Trace({})) == []


def test_brief_and_report_say_the_same_and_miss_no_other_verb() -> None:
    brief = layers().brief()
    assert "It needs 21.2 KiB on cpu" in brief and "Not looked at" not in brief
    assert [one.question for one in cost_statements(with_times(layers()))] == [
        "How much memory",
        "How much to compute",
        "How long it would take",
    ]


def test_times_of_the_step_on_shapes_are_nowhere() -> None:
    text = layers().summary()
    assert "self time" not in text and "wall time" not in text and "slowest" not in text


@pytest.fixture(scope="module")
def stopped() -> nbkit.Trace:
    """A step that ends at a branch on values that no tensor from outside decides."""
    with pytest.raises(nbkit.CostError), nbkit.opcost(values="bound", name="a branch") as trace:
        weight = torch.randn(16, 16, requires_grad=True)
        assert weight.mm(weight).sum() > 0
    return trace


WHERE = "Stopped at aten._local_scalar_dense (tests/views/statements/test_cost.py:"


def test_of_a_step_that_stopped_the_op_and_line_are_on_the_first_line(stopped: nbkit.Trace) -> None:
    for text in (stopped.brief(), stopped.summary()):
        first = " ".join(text.splitlines()[:2])
        assert WHERE in first and "cost is unknown beyond the 4 ops before it." in first


def test_of_a_step_that_stopped_no_peak_and_no_total_is_said_anywhere(stopped: nbkit.Trace, tmp_path: Path) -> None:
    page = nbkit.opreport(stopped, path=tmp_path / "report.html").read_text(encoding="utf-8")
    page = unescape(re.sub("<[^>]+>", " ", re.sub(r"<(script|style).*?</\1>", "", page, flags=re.S)))
    bundle = stopped._repr_mimebundle_()
    texts = (
        stopped.brief(),
        stopped.summary(),
        page,
        *map(str, (bundle[0] if isinstance(bundle, tuple) else bundle).values()),
    )
    assert WHERE in page
    for text in texts:
        assert not re.search(
            r"It needs|It computes|[\d.]+ (k|M|G)?FLOP\b|[Tt]he peak|at its peak|saved for the backw", text
        )
    assert nbkit.plot_memory(stopped).layout.title.text.endswith("until the step stopped")
    assert nbkit.plot_cost(stopped).layout.title.text.endswith("until the step stopped")
