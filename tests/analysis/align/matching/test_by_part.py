"""Matching by parts: weights of projections that one side has fused, and where the rows of a part are."""

import numpy as np

from nbkit.analysis.align.align import align
from nbkit.analysis.align.matching.by_part import rows_within
from tests.analysis.align.makers import execution, numbers

Q, K = numbers(0, 4, 6), numbers(1, 4, 6)


def parts(alignment) -> set[tuple[int, int, str]]:
    return {(match.left, match.right, match.part) for match in alignment.matches.all if match.part}


def test_a_fused_weight_is_made_up_of_its_parts():
    fused = execution(("qkv.weight", None, [], np.concatenate([Q, K])))
    two = execution(("q.weight", None, [], Q), ("k.weight", None, [], K))
    assert parts(align(fused, two)) == {(0, 0, "slice"), (0, 1, "slice")}
    assert parts(align(two, fused)) == {(0, 0, "concat"), (1, 0, "concat")}


def test_less_than_half_of_a_weight_is_no_part():
    fused = execution(("qkv.weight", None, [], np.concatenate([Q, numbers(2, 4, 6), numbers(3, 4, 6)])))
    assert parts(align(fused, execution(("q.weight", None, [], Q)))) == set()


def test_rows_may_stand_in_another_order():
    whole = np.concatenate([Q, K])
    assert rows_within(whole[[6, 1, 3]], whole, 1e-6).tolist() == [6, 1, 3]


def test_columns_and_transposed_parts_are_found():
    whole = np.concatenate([Q, K], axis=1)
    assert rows_within(K, whole, 1e-6).tolist() == list(range(6, 12))
    assert rows_within(K.T.copy(), whole, 1e-6).tolist() == list(range(6, 12))


def test_other_numbers_are_within_nothing():
    assert rows_within(numbers(5, 2, 6), np.concatenate([Q, K]), 1e-3) is None
