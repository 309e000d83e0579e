"""Producers, consumers and partners of ops."""

import numpy as np

from nbkit.analysis.graph.dataflow import backward_ops, consumers, forward_ops, links, producers, with_children
from tests.support.fakes import make_ops, make_tensors, small_trace


def pairs(frame: object, *columns: str) -> list[tuple[int, ...]]:
    return [tuple(row) for row in frame[list(columns)].to_numpy().tolist()]  # type: ignore[index]


def test_producer_is_the_last_op_before_that_made_the_tensor() -> None:
    tensors = make_tensors((0, "output", 7), (1, "input", 7), (2, "output", 7), (3, "input", 7), (4, "input", 8))
    assert links(tensors)["producer_id"].tolist()[:2] == [0, 2]
    assert links(tensors)["producer_id"].isna().tolist() == [False, False, True]


def test_in_place_op_reads_the_old_value_and_makes_the_new_one() -> None:
    tensors = make_tensors((0, "output", 7), (1, "input", 7), (1, "output", 7), (2, "input", 7))
    assert pairs(links(tensors), "op_id", "producer_id") == [(1, 0), (2, 1)]
    assert pairs(consumers(tensors, np.array([0])), "op_id") == [(1,)]


def test_producers_and_consumers_of_one_op() -> None:
    tensors = small_trace().tensors
    assert pairs(producers(tensors, np.array([2])), "position", "producer_id") == [(0, 1)]
    assert pairs(consumers(tensors, np.array([2])), "op_id", "position") == [(3, 0), (5, 0)]


def test_links_of_a_group_leave_out_those_inside_it() -> None:
    trace = small_trace()
    group = with_children(trace.ops, 4)
    assert group.tolist() == [4, 5, 6]
    assert pairs(producers(trace.tensors, group), "op_id", "producer_id") == [(5, 2)]
    assert pairs(consumers(trace.tensors, group), "op_id") == [(7,)]


def test_children_of_children_belong_to_an_op() -> None:
    ops = make_ops({}, {"parent_id": 0}, {}, {"parent_id": 1}, {"parent_id": 2})
    assert with_children(ops, 0).tolist() == [0, 1, 3]


def test_partners_follow_forward_op_id_both_ways() -> None:
    ops = small_trace().ops
    assert forward_ops(ops, np.array([5, 6])).tolist() == [1, 2]
    assert backward_ops(ops, np.array([1])).tolist() == [6]


def test_no_tensors_have_no_links() -> None:
    assert len(links(make_tensors())) == 0
    assert len(producers(make_tensors(), np.array([0]))) == 0
