"""Pairs in order and along the dataflow; the longest common subsequence against the textbook's table."""

from itertools import pairwise
from random import Random

from nbkit.analysis.graph_match.sequences import common_sequence, follow, pairs_between


def test_equal_words_in_order_are_found():
    assert common_sequence("abcbdab", "bdcaba") in ([(1, 0), (2, 2), (3, 4), (5, 5)], [(1, 0), (4, 1), (5, 3), (6, 4)])
    assert common_sequence("abc", "abc") == [(0, 0), (1, 1), (2, 2)]
    assert common_sequence("abc", "") == common_sequence("", "abc") == common_sequence("ab", "cd") == []


def longest(left: str, right: str) -> int:
    row = [0] * (len(right) + 1)
    for one in left:
        above, row = row, [0]
        for index, other in enumerate(right):
            row.append(above[index] + 1 if one == other else max(row[-1], above[index + 1]))
    return row[-1]


def test_none_is_longer():
    random = Random(0)
    for _ in range(200):
        left, right = ("".join(random.choices("abcd", k=random.randrange(20))) for _ in range(2))
        found = common_sequence(left, right)
        assert len(found) == longest(left, right)
        assert all(left[one] == right[other] for one, other in found)
        assert all(a < b and x < y for (a, x), (b, y) in pairwise(found))


def test_new_pairs_stand_between_the_known_ones():
    """0 and 13 are a pair, so that only what is before or behind both may meet."""
    forms = {0: "a", 1: "b", 2: "c", 10: "b", 11: "c", 13: "a", 14: "c"}
    found = pairs_between(([1, 0, 2], [10, 11, 13, 14]), {0: 13}, {13: 0}, lambda _, one: forms[one])
    assert found == [(1, 10), (2, 14)]


def test_pairs_lead_to_pairs():
    added = []

    def around(left: int, right: int) -> list[tuple[int, int]]:
        new = [(left + 1, right + 1)] if left < 3 else []
        added.extend(new)
        return new

    follow([(1, 11), (3, 23)], around)
    assert added == [(2, 12), (3, 13)]
