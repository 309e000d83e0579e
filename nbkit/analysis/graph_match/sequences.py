"""Finds pairs in the order in which things stand on both sides, and along the dataflow from pair to pair."""

from collections import deque
from collections.abc import Callable, Container, Hashable, Iterable, Mapping, Sequence

Pair = tuple[int, int]


def follow(known: Iterable[Pair], around: Callable[[int, int], Iterable[Pair]]) -> None:
    """Goes from pair to pair: `around` adds those next to a pair and returns them, from which it goes on."""
    waiting = deque(known)
    while waiting:
        waiting += around(*waiting.popleft())


def pairs_between(
    sides: tuple[Sequence[int], Sequence[int]],
    right_of: Container[int],
    left_of: Mapping[int, int],
    form: Callable[[int, int], Hashable],
) -> list[Pair]:
    """Returns new pairs of one form in the longest common order of both sides, between what is paired already.

    `right_of` has the ids of the left side that have a partner, `left_of` the partners of the right side's; `form`
    takes the number of the side and an id.
    """
    lefts, rights = sides
    words = [
        [("pair", one) if one in right_of else ("form", form(0, one)) for one in lefts],
        [("pair", left_of[one]) if one in left_of else ("form", form(1, one)) for one in rights],
    ]
    return [
        (lefts[first], rights[second])
        for first, second in common_sequence(*words)
        if lefts[first] not in right_of and rights[second] not in left_of
    ]


def common_sequence(left: Sequence[Hashable], right: Sequence[Hashable]) -> list[tuple[int, int]]:
    """Returns indexes of equal words, rising on both sides; as many as there can be.

    Hyyrö, "Bit-parallel LCS-length computation revisited" (2004): bit j of a row is 0 where the word j of `right`
    makes the common subsequence one longer.
    """
    positions: dict[Hashable, int] = {}
    for index, word in enumerate(right):
        positions[word] = positions.get(word, 0) | 1 << index
    all_ones = (1 << len(right)) - 1
    row, rows = all_ones, []
    for word in left:
        matches = row & positions.get(word, 0)
        row = ((row + matches) | (row - matches)) & all_ones
        rows.append(row)
    return _path(rows, len(right))


def _path(rows: list[int], width: int) -> list[tuple[int, int]]:
    """Returns the way back through the rows, from the end of both lists."""
    pairs, height = [], len(rows)
    while width and height:
        bit = 1 << (width - 1)
        if rows[height - 1] & bit:
            width -= 1
        elif height > 1 and not rows[height - 2] & bit:
            height -= 1
        else:
            height, width = height - 1, width - 1
            pairs.append((height, width))
    return pairs[::-1]
