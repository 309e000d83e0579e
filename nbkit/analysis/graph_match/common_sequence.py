"""The longest common subsequence of two lists of words, by bits: 5,000 x 5,000 words in some milliseconds."""

from collections.abc import Hashable, Sequence


def common_sequence(left: Sequence[Hashable], right: Sequence[Hashable]) -> list[tuple[int, int]]:
    """Indexes of equal words, rising on both sides; as many as there can be.

    Hyyrö, "Bit-parallel LCS-length computation revisited" (2004): bit j of a row is 0 where the word j of `right`
    makes the common subsequence one longer.
    """
    places: dict[Hashable, int] = {}
    for index, word in enumerate(right):
        places[word] = places.get(word, 0) | 1 << index
    all_ones = (1 << len(right)) - 1
    row, rows = all_ones, []
    for word in left:
        found = row & places.get(word, 0)
        row = ((row + found) | (row - found)) & all_ones
        rows.append(row)
    return _path(rows, len(right))


def _path(rows: list[int], width: int) -> list[tuple[int, int]]:
    """The way back through the rows, from the end of both lists."""
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
