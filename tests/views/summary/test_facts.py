"""What every view of a trace says about it as a whole."""

from torch import nn

import nbkit
from nbkit import Trace
from nbkit.views.op_table.source import OpSource
from nbkit.views.static_html.style import facts_html
from nbkit.views.summary.facts import facts
from tests.support.fakes import make_ops, make_trace, small_trace, timed_trace

NODE = {"level": "range", "op": "autograd::engine::evaluate_function: MulBackward0"}
STEP = {"level": "range", "op": "step"}
KINDS = [
    ("aten ops", "4"),
    ("module call", "1"),
    ("named range", "1"),
    ("API call", "1"),
    ("driver call", "1"),
    ("kernel", "1"),
]


def test_a_timeline_is_counted_by_what_its_rows_are() -> None:
    assert list(facts(timed_trace()).figures[:6]) == KINDS


def test_ranges_are_autograds_nodes_where_there_are_any() -> None:
    figures = dict(facts(make_trace(make_ops(STEP, NODE, NODE, {}))).figures)
    assert figures["autograd nodes and other ranges"] == "3"
    assert dict(facts(make_trace(make_ops(STEP, STEP, {}))).figures)["named ranges"] == "2"


def test_calls_of_an_optrace_are_ops_and_told_apart_by_level() -> None:
    assert facts(small_trace()).figures[:3] == (("ops", "8"), ("aten ops", "6"), ("API calls", "2"))
    assert facts(make_trace(make_ops({}, {}))).figures[0] == ("ops", "2")


def test_html_and_widget_word_it_alike() -> None:
    trace = timed_trace()
    assert "module call <b>1</b>" in facts_html(facts(trace))
    assert OpSource(trace).overview()["figures"][:6] == [list(kind) for kind in KINDS]


def test_an_unknown_level_keeps_its_name() -> None:
    assert ("odd", "1") in facts(make_trace(make_ops(STEP, {"level": "odd"}))).figures


def test_a_trace_without_a_name_of_its_own_is_called_by_its_verb_once() -> None:
    assert facts(Trace({"ops": make_ops()}, {"verb": "optime", "name": "optime"})).title == "optime"
    assert facts(Trace({"ops": make_ops()}, {"verb": "optime", "name": "LLaMA step"})).title == "optime LLaMA step"


def test_why_a_trace_is_incomplete() -> None:
    def why(error: object) -> str | None:
        return facts(make_trace(make_ops({}), complete=False, error=error)).incomplete

    assert why(None) == "the recorded code did not run to its end"
    assert why("segfault\nin a kernel") == "segfault\\nin a kernel"
    assert why({"type": "ValueError", "message": "no"}) == "ValueError: no"
    assert why({"type": "ValueError", "op_id": 0, "source": "a.py:3"}) == "ValueError:  (at op 0, a.py:3)"
    ours = why({"type": "KeyError", "message": "x", "failed_in_nbkit": "nbkit/a.py:3"}) or ""
    assert "KeyError" in ours and "nbkit/a.py:3" in ours
    assert ", not the recorded code; what was recorded until then is kept." in ours
    assert facts(make_trace(make_ops({}))).incomplete is None


def test_notes_say_what_is_missing() -> None:
    meta = {
        "notes": ["a note"],
        "skipped": {"of a subclass": 1200},
        "skipped_lines": [{"line": 7, "reason": "cut"}, {"line": 9}],
        "filtered_ops": 3,
        "filters": {"ops": "mm", "modules": "fc"},
    }
    assert facts(make_trace(make_ops({}), **meta)).notes == (
        "a note",
        "skipped 1,200: of a subclass",
        "2 lines could not be read, the first is line 7: cut",
        "left out by filters: 3 ops (ops=mm, modules=fc)",
    )
    bare = {"skipped_lines": [{"line": 7}], "filtered_ops": 1}
    assert facts(make_trace(make_ops({}), **bare)).notes == (
        "1 line could not be read, the first is line 7",
        "left out by filters: 1 op",
    )


def test_figures_of_a_recording() -> None:
    meta = {"wall_us": 2000.0, "recorder_us": 500.0, "recorder": "observer", "repeats": 5, "warmup": 2}
    meta |= {"devices": ["cpu", "cuda:0"], "versions": {"torch": "2.9"}}
    assert facts(make_trace(make_ops({}), **meta)).figures == (
        ("op", "1"),
        ("wall time", "2.00 ms"),
        ("overhead", "about 500 µs (25.0 %)"),
        ("recorder", "observer"),
        ("median of", "5 repeats after 2 to warm up"),
        ("devices", "cpu, cuda:0"),
        ("torch", "2.9"),
    )
    meta = {"wall_us": None, "recorder_us": 500.0, "recorder": None, "repeats": 1, "devices": ["cpu"], "versions": {}}
    assert facts(make_trace(make_ops({}, {}), **meta)).figures == (
        ("ops", "2"),
        ("overhead", "about 500 µs"),
        ("median of", "1 repeat"),
        ("device", "cpu"),
    )


def test_a_trace_is_called_by_its_verb_and_its_name() -> None:
    assert facts(make_trace(make_ops(), verb="optime", name="a")).title == "optime a"
    assert facts(make_trace(make_ops(), verb="optime", name="optime")).title == "optime"
    assert facts(Trace({}, {})).title == "trace"


def test_a_model_counts_modules_and_parameters_and_says_which_are_tied() -> None:
    model = nn.ModuleList([nn.Linear(256, 4, bias=False), nn.Linear(256, 4, bias=False)])
    known = facts(nbkit.opgraph(model))
    assert known.figures[:2] == (("modules", "3"), ("parameters", "2,048 (8.00 KiB)")) and known.notes == ()
    model[1].weight = model[0].weight
    known = facts(nbkit.opgraph(model))
    assert known.figures[1] == ("parameters", "1,024 (4.00 KiB)")
    assert known.notes == ("tied parameters are counted once: 1.weight is 0.weight",)
