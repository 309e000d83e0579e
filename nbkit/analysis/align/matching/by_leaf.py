"""Matches gradients by what they are of: those of a fused weight hold those of the split ones, in the same places."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from math import gcd

import numpy as np
import numpy.typing as npt

from nbkit.analysis.align.allowance import SENSITIVITY, region_of
from nbkit.analysis.align.errors import error_of
from nbkit.analysis.align.matches import Match, Matches
from nbkit.analysis.align.matching.by_part import MOST_PARTS, key_weights, nearest
from nbkit.analysis.align.matching.by_value import same_of, tolerance_of
from nbkit.analysis.align.relations import Array, relative_error
from nbkit.analysis.align.side import Side

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
# A slice is looked for at so many starts, at most; beyond that only where whole slices lie one behind the other.
MOST_STARTS = 64


@dataclass(frozen=True)
class Rows:
    """Holds a tensor as rows, along one of its axes, with a number for each row by which it is looked for."""

    rows: Array
    keys: Floats


@dataclass(frozen=True)
class Gradient:
    """Holds a gradient and what it is of, both along each of their axes."""

    number: int
    gradient: list[Rows]
    leaf: list[Rows]


def match_gradients(left: Side, right: Side, matches: Matches) -> None:
    """Adds matches of gradients without a partner that hold the same rows: one the other's, or those of several.

    The gradient of a fused weight has those of the split ones as its rows, that of a weight whose rows stand in another
    order has the other one's in that order: just where the weights have the same rows.
    """
    sides = left, right
    free = [list(_left_over(side, matches.of(which))) for which, side in enumerate(sides)]
    for which in (0, 1):
        for whole, part in product(free[which], free[1 - which]):
            sizes = int(sides[which].numel[whole.number]), int(sides[1 - which].numel[part.number])
            is_fitting = sizes[1] <= sizes[0] <= MOST_PARTS * sizes[1]
            if not is_fitting or not _is_free(which, whole, part, matches, is_part=sizes[1] < sizes[0]):
                continue
            if _is_within(whole, part, _allowed(left, right, 1 - which, matches, part.number)):
                pair = (part.number, whole.number) if which else (whole.number, part.number)
                name = None if sizes[0] == sizes[1] else "concat" if which else "slice"
                matches.add(Match(*pair, "values", None, agrees=True, part=name))


def _is_free(which: int, whole: Gradient, part: Gradient, matches: Matches, *, is_part: bool) -> bool:
    """Returns whether both have no partner, or the whole has other parts alone; `which` is the side of the whole."""
    known = matches.of(which).get(whole.number)
    return part.number not in matches.of(1 - which) and (known is None or (is_part and known.part is not None))


def _left_over(side: Side, taken: dict[int, Match]) -> Iterator[Gradient]:
    for leaf, number in side.execution.gradients.items():
        values = side.value(number), side.value(leaf)
        if number in taken or not side.is_telling[number] or values[0] is None or values[1] is None:
            continue
        if values[0].shape == values[1].shape:
            yield Gradient(number, list(_along_axes(values[0])), list(_along_axes(values[1])))


def _along_axes(value: Array) -> Iterator[Rows]:
    for axis in range(value.ndim):
        rows = np.moveaxis(value, axis, 0).reshape(value.shape[axis], -1)
        yield Rows(rows, rows.astype(np.float64) @ key_weights(rows.shape[1]))


def _is_within(whole: Gradient, part: Gradient, allowed: float) -> bool:
    """Returns whether the rows of one gradient are rows of another one, in the places where those of the leaf are."""
    for outer, inner in product(range(len(whole.leaf)), range(len(part.leaf))):
        sizes = [each.leaf[axis].rows.shape for each, axis in ((whole, outer), (part, inner))]
        if sizes[0][1] != sizes[1][1] or sizes[0][0] < sizes[1][0]:
            continue
        pairs = (whole.gradient[outer], part.gradient[inner]), (whole.leaf[outer], part.leaf[inner])
        for places in _places(*pairs):
            if all(relative_error(one.rows, all_of.rows[places]) <= allowed for all_of, one in pairs):
                return True
    return False


def _allowed(left: Side, right: Side, which: int, matches: Matches, part: int) -> float:
    """Returns the error that rounding explains, alone or as it was in what the part is made of.

    `which` is the side of the part.
    """
    side, known = (left, right)[which], matches.of(which)
    read = [known[one] for one in region_of(side, part, known) if one in known and one != part]
    before = [error for match in read if match.agrees and (error := error_of(left, right, match)) is not None]
    inherited = SENSITIVITY * max(before, default=0.0)
    return min(max(same_of(left, right), inherited), tolerance_of(left, right))


def _places(gradients: tuple[Rows, Rows], leaves: tuple[Rows, Rows]) -> Iterator[Ints]:
    """Yields places of rows that may be those of the part: the slice that is nearest, then where the leaf has them."""
    (outer, inner), count = gradients, len(gradients[1].rows)
    yield min(
        slices_of(len(outer.rows), count), key=lambda places: float(np.abs(outer.keys[places] - inner.keys).max())
    )
    if len(outer.rows) > 1 and (places := nearest(leaves[0].keys, leaves[1].keys)) is not None:
        yield places


def slices_of(length: int, count: int) -> Iterator[Ints]:
    """Yields the places of slices of so many rows: all in one, or as many in each of some equal groups (heads)."""
    for groups in range(1, gcd(length, count) + 1):
        if length % groups or count % groups:
            continue
        size, taken = length // groups, count // groups
        step = gcd(size, taken)
        step = step if (size - taken) // step < MOST_STARTS else taken
        for start in range(0, size - taken + 1, step):
            yield (np.arange(groups)[:, None] * size + np.arange(start, start + taken)).reshape(-1)
