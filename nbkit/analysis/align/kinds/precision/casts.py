"""Tests whether one side rounds what an op reads to a coarser dtype and back, where the other side does not."""

from collections.abc import Container, Iterator, Mapping
from math import prod
from typing import NamedTuple

from nbkit.analysis.align.align import Alignment
from nbkit.analysis.align.errors import given_matches, given_value, region_of
from nbkit.analysis.align.events import Event
from nbkit.analysis.align.matches import Match
from nbkit.analysis.align.region import Array, Kind
from nbkit.analysis.align.rerun import explained
from nbkit.analysis.align.side import Side


class Cast(NamedTuple):
    """Holds the result_ids of a cast to fewer bits, of what it reads on both sides, and of that in its dtype again."""

    number: int
    read: Match
    back: int


def cast_and_back(alignment: Alignment, event: Event) -> Kind | None:
    """Tests whether the pair agrees once the right one reads what is cast on one side alone without, or with, the cast.

    The right ops run again from the left one's values; `explained` is what that leaves of the difference.
    """
    match, left, right = event.match, alignment.left, alignment.right
    if match is None:
        return None
    given = given_matches(left, right, alignment.matches, alignment.differing)
    same = {number: one for number, one in given.items() if one.agrees}
    ends = (left, match.left, {one.left: one for one in same.values()}), (right, match.right, same)
    for side, end, known in ends:
        casts = list(_casts(side, end, known))
        instead = dict(_right_value(alignment, cast, side is right) for cast in casts)
        if casts and (rest := explained(alignment, match, instead)) is not None:
            return _kind(alignment, casts[0], side is right, rest)
    return None


def _casts(side: Side, end: int, known: Mapping[int, Match]) -> Iterator[Cast]:
    """Yields the casts to fewer bits and back between the results that agree and an end that does not."""
    region = region_of(side, end, known)
    for number in region:
        if number == end or number in known or not side.is_passing[number]:
            continue
        source = side.results[number].sources[0]
        if not side.eps[number] > side.eps[source] > 0:
            continue
        read = _first(side, source, known)
        if read is None or _elements(side, read) != _elements(side, number):  # one that is expanded before
            continue
        backs = (
            back
            for back in region
            if back not in known and side.eps[back] <= side.eps[source] and _first(side, back, (number,)) is not None
        )
        back = next((back for back in backs if _elements(side, back) == _elements(side, number)), None)
        if back is not None:
            yield Cast(number, known[read], back)


def _elements(side: Side, number: int) -> int:
    return prod(side.results[number].shape)


def _first(side: Side, number: int, known: Container[int]) -> int | None:
    """Returns which of the known results a result shows as it is; null where something is computed before."""
    while number not in known:
        if not side.is_passing[number] or side.does[number] == "permute":
            return None
        number = side.results[number].sources[0]
    return number


def _right_value(alignment: Alignment, cast: Cast, is_right: bool) -> tuple[int, Array]:
    """Returns what the right one shall read: the left value without the cast, or the one that the left one has cast."""
    left, right = alignment.left, alignment.right
    assert cast.read.relation is not None
    if is_right:
        return cast.back, given_value(left, cast.read).reshape(right.results[cast.back].shape)
    value = left.execution.value(cast.back)
    assert value is not None
    return cast.read.right, cast.read.relation.to_right(value.reshape(left.results[cast.read.left].shape))


def _kind(alignment: Alignment, cast: Cast, is_right: bool, rest: float) -> Kind:
    which, side = ("right", alignment.right) if is_right else ("left", alignment.left)
    dtype, name = side.results[cast.number].dtype, side.results[side.results[cast.number].sources[0]].name
    message = f"The {which} one alone casts {name} to {dtype} and back; without that cast they agree."
    at = (None, cast.number) if is_right else (cast.number, None)
    return Kind("accumulation_dtype", message, rest, at)
