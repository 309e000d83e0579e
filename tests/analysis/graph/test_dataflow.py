"""Producers, consumers and partners of ops."""

import numpy as np

from nbkit.analysis.graph.dataflow import backward_ops, consumers, forward_ops, producers, with_children
from nbkit.schema import OPS
from nbkit.step.step import Step
from nbkit.trace.trace import step_of
from tests.support.fakes import make_ops, make_tensors, small_trace


def test_producers_and_consumers_of_one_op() -> None:
    step = step_of(small_trace())
    assert producers(step, np.array([2])).tolist() == [1]
    assert consumers(step, np.array([2])).tolist() == [3, 5]


def test_an_op_in_place_reads_from_the_op_before_it_and_is_read_by_the_next() -> None:
    tensors = make_tensors((0, "output", 7), (1, "input", 7), (1, "output", 7), (2, "input", 7))
    step = Step(OPS.frame(), tensors)
    assert [producers(step, np.array([op_id])).tolist() for op_id in range(3)] == [[], [0], [1]]
    assert consumers(step, np.array([0])).tolist() == [1]


def test_links_of_a_group_leave_out_those_inside_it() -> None:
    trace = small_trace()
    group = with_children(trace.ops, 4)
    assert group.tolist() == [4, 5, 6]
    assert producers(step_of(trace), group).tolist() == [2]
    assert consumers(step_of(trace), group).tolist() == [7]


def test_children_of_children_belong_to_an_op() -> None:
    ops = make_ops({}, {"parent_id": 0}, {}, {"parent_id": 1}, {"parent_id": 2})
    assert with_children(ops, 0).tolist() == [0, 1, 3]


def test_partners_follow_forward_op_id_both_ways() -> None:
    ops = small_trace().ops
    assert forward_ops(ops, np.array([5, 6])).tolist() == [1, 2]
    assert backward_ops(ops, np.array([1])).tolist() == [6]


def test_no_tensors_have_no_links() -> None:
    step = Step(OPS.frame(), make_tensors())
    assert not len(producers(step, np.array([0]))) and not len(consumers(step, np.array([0])))
