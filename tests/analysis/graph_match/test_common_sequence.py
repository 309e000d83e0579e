"""The longest common subsequence, against the textbook's table."""

from itertools import pairwise
from random import Random

from nbkit.analysis.graph_match.ops import common_sequence


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
