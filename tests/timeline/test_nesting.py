import numpy as np
import pytest

from nbkit.timeline.nesting import call_order, depth_levels, depths, inherited, parents, self_times, subtree_sums


def array(*values):
    return np.array(values, dtype=np.int64)


@pytest.mark.parametrize(
    ("spans", "expected"),
    [
        ([(0, 10), (2, 4), (4, 9), (5, 6), (10, 12)], [-1, 0, 0, 2, -1]),
        ([(0, 10), (0, 10), (0, 5)], [-1, 0, 1]),  # the same span: the first is the parent
        ([(0, 10), (5, 15), (6, 9), (16, 17)], [-1, -1, 1, -1]),  # one that ends later is not inside
        ([(0, 10), (3, 3), (3, 3)], [-1, 0, 0]),  # no duration
        ([], []),
    ],
)
def test_parents_are_the_innermost_that_cover(spans, expected):
    start, end = array(*[begin for begin, _ in spans]), array(*[end for _, end in spans])
    assert parents(np.zeros(len(spans), np.int64), start, end).tolist() == expected


def test_threads_do_not_nest_in_each_other():
    assert parents(array(1, 2, 1, 2), array(0, 1, 2, 3), array(10, 9, 8, 7)).tolist() == [-1, -1, 0, 1]


def test_parents_precede_their_parts():
    assert call_order(array(5, 0, 0, 0), array(1, 3, 9, 3)).tolist() == [2, 1, 3, 0]


def test_levels_and_inheritance():
    parent = array(-1, 0, 1, 1, -1, 4)
    levels = depth_levels(parent)
    assert [rows.tolist() for rows in levels] == [[0, 4], [1, 5], [2, 3]]
    assert depths(parent).tolist() == [0, 1, 2, 2, 0, 1]
    own = np.array([False, True, False, True, False, False])
    assert inherited(parent, levels, own).tolist() == [-1, 1, 1, 3, -1, -1]
    assert depth_levels(array()) == []


def test_times_of_trees():
    parent = array(-1, 0, 0, 2)
    assert self_times(parent, array(10, 3, 4, 1)).tolist() == [3, 3, 3, 1]
    assert self_times(array(-1, 0, 0), array(10, 8, 8)).tolist() == [0, 8, 8]  # siblings that overlap
    assert subtree_sums(parent, depth_levels(parent), np.array([1.0, 2.0, 4.0, 8.0])).tolist() == [15.0, 2.0, 12.0, 8.0]
    assert subtree_sums(parent, depth_levels(parent), np.ones((4, 2)))[:, 1].tolist() == [4.0, 1.0, 2.0, 1.0]
