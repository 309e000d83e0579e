"""Matches results of which one holds the other one as a part: fused projections, weights laid side by side."""

from collections.abc import Iterator
from itertools import product

import numpy as np
import numpy.typing as npt

from nbkit.analysis.align.matches import Match, Matches
from nbkit.analysis.align.relations import Array
from nbkit.analysis.align.side import Side
from nbkit.ops.kinds import PASSING

Ints = npt.NDArray[np.int64]
# A tensor is looked for in others of up to so many times its size.
MOST_PARTS = 8
# So many ops lie between a fused result and the parts that are split off it.
NEARBY = 4
BETWEEN = PASSING - {"cast", "expand"} | {"slice", "split"}


def match_parts(left: Side, right: Side, matches: Matches, tolerance: float) -> None:
    """Adds matches of a result without a partner that the rows or columns of smaller ones make up, wholly."""
    for side in (0, 1):
        mine, other = (left, right) if side == 0 else (right, left)
        for whole in list(matches.unmatched(side, len(mine))):
            if not mine.is_telling[whole] or mine.value(whole) is None or len(mine.results[whole].shape) == 0:
                continue
            parts = _parts(mine, other, matches, side, whole, tolerance)
            for part in parts:
                pair = (whole, part) if side == 0 else (part, whole)
                name = "slice" if side == 0 else "concat"
                matches.add(Match(*pair, "values", None, agrees=True, part=name))


def _parts(mine: Side, other: Side, matches: Matches, side: int, whole: int, tolerance: float) -> list[int]:
    """Returns the results of the other side that make up a result; none unless they cover most of it."""
    value = mine.value(whole)
    assert value is not None
    found, covered = [], 0
    for candidate in _candidates(mine, other, matches, side, whole):
        part = other.value(candidate)
        if part is not None and rows_within(part, value, tolerance) is not None:
            found.append(candidate)
            covered += int(other.numel[candidate])
    return found if 2 * covered >= mine.numel[whole] else []


def _candidates(mine: Side, other: Side, matches: Matches, side: int, whole: int) -> Iterator[int]:
    """Yields results of the other side that may be parts: state without a partner, else partners of slices."""
    numel = int(mine.numel[whole])
    if mine.results[whole].kind in ("parameter", "buffer", "constant"):
        for number in matches.unmatched(1 - side, len(other)):
            size = int(other.numel[number])
            is_state = other.results[number].kind in ("parameter", "buffer", "constant")
            if is_state and other.is_telling[number] and size < numel <= MOST_PARTS * size:
                yield number
        return
    seen, frontier = {whole}, [whole]
    partners = dict[int, None]()
    for _ in range(NEARBY):
        frontier = [
            reader
            for number in frontier
            for reader in mine.execution.readers[number]
            if reader not in seen and mine.does[reader] in BETWEEN
        ]
        seen.update(frontier)
        for number in frontier:
            partner = matches.partner(side, number)
            if partner is not None and numel // MOST_PARTS <= int(other.numel[partner]) < numel:
                partners[_earliest(other, partner)] = None
    yield from partners
    if not partners and not mine.is_main[whole]:
        yield from _halves(mine, other, matches, side, whole)


def _halves(mine: Side, other: Side, matches: Matches, side: int, whole: int) -> Iterator[int]:
    """Yields unmatched tables of the other side that may be one half of a table, whose other half repeats it."""
    shape = mine.results[whole].shape
    for number in np.flatnonzero(2 * other.numel == mine.numel[whole]).tolist():
        is_half = number not in matches.of(1 - side) and other.results[number].shape[:-1] == shape[:-1]
        if is_half and other.is_telling[number] and not other.is_main[number]:
            yield number


def _earliest(side: Side, number: int) -> int:
    """Returns what a view is a view of: as far back as its elements are the same in number."""
    while side.is_passing[number] and side.numel[side.results[number].sources[0]] == side.numel[number]:
        number = side.results[number].sources[0]
    return number


def rows_within(part: Array, whole: Array, tolerance: float) -> Ints | None:
    """Returns at which places along an axis of `whole` the slices of `part` along one of its axes are; null if not.

    Slices are compared as rows of numbers in the order of the other axes.
    """
    for whole_axis, part_axis in product(range(whole.ndim), range(part.ndim)):
        length, count = whole.shape[whole_axis], part.shape[part_axis]
        if length <= count or whole.size // length != part.size // max(count, 1):
            continue
        rows = [
            np.moveaxis(value, axis, 0).reshape(value.shape[axis], -1).astype(np.float64)
            for value, axis in ((whole, whole_axis), (part, part_axis))
        ]
        places = _places(rows[0], rows[1], tolerance)
        if places is not None:
            return places
    return None


def _places(whole: npt.NDArray[np.float64], part: npt.NDArray[np.float64], tolerance: float) -> Ints | None:
    """Returns for each row of `part` the row of `whole` that is nearest, if all are near and none is taken twice."""
    scale = float(np.sqrt((part**2).mean())) * whole.shape[1] ** 0.5
    if not np.isfinite(scale) or scale == 0:
        return None
    weights = key_weights(whole.shape[1])
    keys, wanted = whole @ weights, part @ weights
    places = nearest(keys, wanted)
    if places is None or np.abs(keys[places] - wanted).max() > 4 * tolerance * scale:
        return None
    return places if np.abs(whole[places] - part).max() <= 4 * tolerance * np.abs(part).max() else None


def key_weights(width: int) -> npt.NDArray[np.float64]:
    """Returns the random vector whose product with a row of so many numbers is its key."""
    return np.random.default_rng(7).standard_normal(width)


def nearest(keys: npt.NDArray[np.float64], wanted: npt.NDArray[np.float64]) -> Ints | None:
    """Returns for each wanted key the place of the nearest one; null where one is the nearest of two."""
    order = np.argsort(keys)
    at = np.clip(np.searchsorted(keys[order], wanted), 1, len(keys) - 1)
    before, after = order[at - 1], order[at]
    places = np.where(np.abs(keys[before] - wanted) <= np.abs(keys[after] - wanted), before, after)
    return None if len(set(places.tolist())) < len(places) else places
