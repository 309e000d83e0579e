"""What every view of a trace says about it as a whole."""

from nbkit import Trace
from nbkit.views.op_table.source import OpSource
from nbkit.views.static_html.style import facts_html
from nbkit.views.summary.facts import facts
from tests.fakes import make_ops, make_trace, small_trace, timed_trace

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
