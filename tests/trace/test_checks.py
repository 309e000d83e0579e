"""Tests that functions that take a trace say what they were passed instead, and which ops there are."""

import pytest

import nbkit
from tests.support.fakes import small_trace


@pytest.mark.parametrize(
    "call",
    [
        lambda given: nbkit.compare_times(given, given),
        lambda given: nbkit.compare_values(given, given),
        lambda given: nbkit.producers(given, 0),
        lambda given: nbkit.script_of(given, 0),
        nbkit.OpTable,
        nbkit.DiffTable,
        nbkit.FlameGraph,
        nbkit.plot_ops,
        nbkit.plot_modules,
        nbkit.plot_memory,
    ],
)
def test_what_is_no_trace_is_named(call):
    with pytest.raises(nbkit.OptionError, match=r"expected to be a trace, and this is a str; give .*nbkit\.load"):
        call("trace_folder")


def test_the_argument_that_is_no_trace_is_named():
    with pytest.raises(nbkit.OptionError, match="^right is expected to be a trace, and this is a DataFrame"):
        nbkit.compare_times(small_trace(), small_trace().ops)
    with pytest.raises(nbkit.OptionError, match="^base is expected to be a trace, and this is a int"):
        nbkit.FlameGraph(small_trace(), 3)


@pytest.mark.parametrize("op_id", [8, -1, "0", 1.0, None])
def test_an_op_that_is_not_in_the_trace_is_refused(op_id):
    for call in (nbkit.producers, nbkit.call_of, nbkit.script_of):
        with pytest.raises(nbkit.OptionError, match=f"op_id={op_id!r} is not in the trace; its ops are 0 to 7"):
            call(small_trace(), op_id)


def test_a_trace_without_ops_has_none_to_ask_for():
    with pytest.raises(nbkit.OptionError, match="op_id=0 is not in the trace; it has no ops"):
        nbkit.producers(nbkit.Trace(), 0)


@pytest.mark.parametrize("view", [nbkit.OpTable, nbkit.DiffTable, nbkit.plot_ops, nbkit.plot_modules])
def test_a_trace_that_is_still_recorded_has_nothing_to_show_yet(view):
    with pytest.raises(AttributeError, match="no frames yet: 'ops' is there once its recording has ended"):
        view(nbkit.Trace())
