"""The tables of an opstable trace: counts of each check, and the ops that differ."""

import torch

import nbkit
from nbkit.schema import STABILITY
from nbkit.trace.trace import Trace
from nbkit.verbs.operators.opstable import stability_sections
from tests.support.fakes import small_trace

PLACE = {"module": None, "phase": "forward", "source": None, "call": 0}


def row(op_id, op, fraction, *verdicts):
    names = ("run_to_run", "batch_invariant", "thread_invariant", "stride_invariant")
    far = {"max_ulp": 1e9 * fraction, "max_difference_fraction": fraction}
    return {"op_id": op_id, "op": op, **PLACE, **dict(zip(names, verdicts, strict=True)), **far}


def test_what_differs_from_run_to_run_comes_first():
    rows = [
        row(0, "mm", 4.0, "same", "differs", "same", None),
        row(1, "mm", 9.0, "same", "differs", "same", "differs"),
        row(2, "index_add", 2.0, "differs", None, None, None),
        row(3, "relu", 0.0, "same", "same", "same", "same"),
    ]
    trace = Trace({"stability": STABILITY.frame(rows)}, {"verb": "opstable"})
    counts, ops = stability_sections(trace, 5)
    assert ops.title == "Ops whose bits change with batch, threads or strides"
    assert counts.rows == [
        ["run again", 3, 1, 0],
        ["another batch", 1, 2, 1],
        ["other threads", 3, 0, 1],
        ["other strides", 1, 1, 2],
    ]
    assert ops.rows == [["index_add", 1, 1, "run again", 2.0], ["mm", 2, 2, "another batch, other strides", 9.0]]


def test_where_nothing_differs_there_are_counts_alone():
    with nbkit.opstable() as trace:
        torch.ones(3, 2).neg()
    (counts,) = stability_sections(trace, 5)
    assert [line[2] for line in counts.rows] == [0, 0, 0, 0]
    assert "each gave the same bits" in trace.summary()


def test_other_traces_have_none():
    assert stability_sections(small_trace(), 5) == []


def test_results_far_apart_in_ulp_are_told_beside_the_largest_element():
    rows = [row(0, "mm", 3e-7, "same", "differs", "same", None), row(1, "relu", 0.0, "same", "same", "same", "same")]
    brief = Trace({"stability": STABILITY.frame(rows)}, {"verb": "opstable", "complete": True}).brief()
    assert (
        "Nothing wrong found. 2 calls run again: each gave the same bits from the same inputs. With another batch, "
        "other threads or strides the bits of 1 call change, by up to 3e-07 of the largest element (mm)." in brief
    )
    assert (
        "bits of 1 call change."
        in Trace({"stability": STABILITY.frame([{**rows[0], "max_difference_fraction": None}])}).brief()
    )
