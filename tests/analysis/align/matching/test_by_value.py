"""Matching by values: insertions, other orders, other shapes, and what equal values do not prove."""

import numpy as np

from nbkit.analysis.align.align import align
from nbkit.analysis.align.matching.by_value import near
from nbkit.trace.executions.values import Values
from tests.analysis.align.makers import execution, numbers

A, B, C, X = (numbers(seed, 4, 6) for seed in range(4))


def pairs(alignment) -> set[tuple[str, str, str, bool]]:
    left, right = alignment.left.results, alignment.right.results
    return {
        (left[match.left].name, right[match.right].name, match.relation.name, match.agrees)
        for match in alignment.matches.all
    }


def test_a_leading_insertion_is_one_gap():
    three = [("a", "Exp", [], A), ("b", "Abs", ["a"], B), ("c", "Log", ["b"], C)]
    found = align(execution(("x", "Neg", [], X), *three), execution(*three))
    assert pairs(found) == {(name, name, "same", True) for name in "abc"}
    assert list(found.matches.unmatched(0, 4)) == [0] and found.events == ()


def test_an_empty_execution_leaves_all_of_the_other_alone():
    three = [("a", "Exp", [], A), ("b", "Abs", ["a"], B)]
    for sides in ((three, []), ([], three), ([], [])):
        assert align(*(execution(*steps) for steps in sides)).matches.all == []


def test_five_hundred_results_shifted_by_sixty():
    chain = [(f"r{at}", "Op", [f"r{at - 1}"] if at else [], numbers(at, 3, 5)) for at in range(560)]
    shifted = [(name, op, [] if name == "r60" else read, value) for name, op, read, value in chain[60:]]
    found = align(execution(*chain[:500]), execution(*shifted))
    assert pairs(found) >= {(f"r{at}", f"r{at}", "same", True) for at in range(60, 500)}
    assert all(match.left == match.right + 60 for match in found.matches.all if match.agrees)


def test_branches_in_another_order_are_all_paired():
    start, first, second = ("x", None, [], X), ("a", "Exp", ["x"], A), ("b", "Abs", ["x"], B)
    end = ("c", "Add", ["a", "b"], C)
    found = align(execution(start, first, second, end), execution(start, second, first, end))
    assert pairs(found) == {(name, name, "same", True) for name in "xabc"}


def test_transposed_and_reshaped_results_are_matched():
    left = execution(("a", "Exp", [], A), ("b", "Abs", ["a"], B))
    right = execution(("t", "Exp", [], A.T.copy()), ("r", "Abs", ["t"], B.reshape(2, 12)))
    found = align(left, right)
    assert pairs(found) == {("a", "t", "permute", True), ("b", "r", "reshape", True)}
    assert found.matches.right_of[0].relation.axes == (1, 0)


def test_of_equal_values_an_ops_result_meets_an_ops_whatever_the_input_is_called():
    positive = np.abs(A)
    left = execution(("x", None, [], X), ("a", "Exp", ["x"], positive), ("c", "Log", ["a"], C))
    right = execution(("a", None, [], positive), ("y", "Relu", ["a"], positive), ("c", "Log", ["y"], C))
    partners = align(left, right).matches.right_of
    assert {number: match.right for number, match in partners.items()} == {1: 1, 2: 2}


def test_another_dtype_is_a_cast():
    found = align(execution(("a", "Exp", [], A)), execution(("h", "Exp", [], A.astype(np.float16))))
    assert pairs(found) == {("a", "h", "cast", True)}


def test_nan_at_the_same_places_agrees_and_against_inf_does_not():
    def run(value):
        changed = A.copy()
        changed[0, 0] = value
        return execution(("x", None, [], X), ("a", "Log", ["x"], changed))

    assert ("a", "a", "same", True) in pairs(align(run(np.nan), run(np.nan)))
    assert ("a", "a", "same", False) in pairs(align(run(np.nan), run(np.inf)))


def test_near_rows_are_of_one_group_and_rows_of_nan_are_near_none():
    left, right = np.array([[0.0], [1.0], [np.nan]]), np.array([[0.05], [1.0], [np.nan]])
    found = near(left, right, np.array([3, 3, 3]), np.array([3, 4, 3]), 0.1)
    assert (found.left.tolist(), found.right.tolist()) == ([0], [0])


def test_masked_scores_of_two_layers_are_told_apart():
    hidden = np.where(np.eye(4, 6, -1), np.finfo(np.float32).min, 0).astype(np.float32)
    first, second = A + hidden, B + hidden
    left = execution(("x", "Neg", [], X), ("a", "Add", [], first), ("b", "Add", [], second), outputs=["a", "b"])
    right = execution(("c", "Add", [], first), ("d", "Add", [], second), outputs=["c", "d"])
    assert pairs(align(left, right)) == {("a", "c", "same", True), ("b", "d", "same", True)}


def test_a_transposed_result_whose_values_were_not_kept_is_matched_by_its_statistics():
    def run(name, value, *, is_kept):
        return execution((name, "Exp", [], value), values=None if is_kept else Values(0))

    wide = numbers(4, 1, 3, 5, 2)
    turned = wide.transpose(2, 0, 3, 1).copy()
    found = align(run("a", wide, is_kept=False), run("t", turned, is_kept=True))
    assert pairs(found) == {("a", "t", "permute", True)}
    np.testing.assert_array_equal(found.matches.right_of[0].relation.to_right(wide), turned)
    other = align(run("a", wide, is_kept=False), run("t", turned * 2, is_kept=False))
    assert not any(match.agrees for match in other.matches.all)
