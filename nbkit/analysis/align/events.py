"""Finds where differences begin: what the ops of a pair add, other state, and what one side alone does."""

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass

from nbkit.analysis.align.allowance import Local, least_allowed, region_of
from nbkit.analysis.align.alone.results import alone_in
from nbkit.analysis.align.differing import SLICING
from nbkit.analysis.align.errors import error_of, given_matches
from nbkit.analysis.align.matches import Match, Matches
from nbkit.analysis.align.matching.by_value import tolerance_of
from nbkit.analysis.align.side import Side
from nbkit.step.reachable import reachable


@dataclass(frozen=True)
class Event:
    """Holds one beginning: the pair at which it shows, and the results of each side in which it lies.

    `left` and `right` are in the order of their execution, the pair's last, without what agrees; empty where a side has
    nothing there. `match` is null where there is no pair. `tables` has of each side what the region makes of no
    parameter, such as masks and rotary tables, where nothing of the other side equals it. `message` says what begins
    there, where that is not known by values. `unknown` is the number of pairs of ops that lead there and that no values
    are known of: any of them may be where it begins.
    """

    match: Match | None
    left: tuple[int, ...]
    right: tuple[int, ...]
    order: float
    tables: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())
    message: str | None = None
    unknown: int = 0


def events(
    left: Side,
    right: Side,
    matches: Matches,
    differs: tuple[set[int], set[int]],
    local: dict[int, Local],
    state: Iterable[Match],
) -> list[Event]:
    """Returns all beginnings in the order of the left execution; `state` are the pairs of it that differ."""
    found = [Event(match, (match.left,), (match.right,), first_use(left, match.left)) for match in state]
    found += _local_events(left, right, matches, differs, local)
    shown = {event.match.right for event in found if event.match is not None}
    found += [event for event in _nan_events(left, right, matches) if event.right[-1] not in shown]
    # What one side alone has is how it gets there, unless nothing else says where a difference comes from; and of a
    # side that ended early the rest is missing.
    if not found and not left.execution.error and not right.execution.error:
        found = alone_events(left, right, matches, differs, local)
    return sorted(found, key=lambda event: event.order)


def _nan_events(left: Side, right: Side, matches: Matches) -> list[Event]:
    """Returns pairs of which the right op alone makes NaN, of what has none: also where a mask leaves nothing."""
    found = []
    for match in matches.left_of.values():
        result = right.results[match.right]
        is_new = _has_nan(right, match.right) and not any(_has_nan(right, source) for source in result.sources)
        if is_new and result.kind == "op" and not _has_nan(left, match.left):
            found.append(Event(match, (match.left,), (match.right,), match.left))
    return found


def _has_nan(side: Side, number: int) -> bool:
    known = side.results[number].features
    return known is not None and known.nan_count > 0


def first_use(side: Side, number: int) -> float:
    """Returns the place of a result in the order of its execution; of state just before the op that reads it first."""
    readers = side.execution.readers[number]
    return number if side.results[number].kind == "op" or not readers else readers[0] - 0.5


def _local_events(
    left: Side, right: Side, matches: Matches, differs: tuple[set[int], set[int]], local: dict[int, Local]
) -> list[Event]:
    """Returns pairs whose own ops, or those since the nearest matched results, add more than they may."""
    found = []
    # In a coarse dtype values that are this near may have been paired by chance: rounding does not tell them apart.
    coarsest, tolerance = max(left.coarsest, right.coarsest), tolerance_of(left, right)
    given = given_matches(left, right, matches, differs)
    for number, what in sorted(local.items()):
        match = matches.left_of[number]
        error = error_of(left, right, match)
        noise = least_allowed(coarsest, 1, 1, once=what.eps > 0)
        if what.error <= (what.allowed if error is None or error > tolerance else max(what.allowed, noise)):
            continue
        if unknown := _unknown(left, right, number, given, matches):
            found.append(Event(match, (match.left,), (number,), match.left, unknown=unknown))
            continue
        inside, tables = [], []
        for side, end, known, differing in (
            (left, match.left, matches.right_of, differs[0]),
            (right, number, matches.left_of, differs[1]),
        ):
            new = [one for one in region_of(side, end, _agreed_of(side, known)) if one == end or one not in known]
            inside.append(tuple(one for one in new if one == end or _may_begin(side, one, differing)))
            tables.append(tuple(one for one in new if one != end and not side.is_main[one]))
        order = min(match.left, _order_of_right(left, right, matches, number))
        ends = _from_the_whole(left, inside[0], matches.right_of), _from_the_whole(right, inside[1], matches.left_of)
        found.append(Event(match, *ends, order, (tables[0], tables[1])))
    return found


def _unknown(left: Side, right: Side, number: int, given: Container[int], matches: Matches) -> int:
    """Returns how many pairs of ops without known values lead to a right result from what is compared before it."""
    return sum(
        one not in given and right.results[one].kind == "op" and left.is_missing(matches.left_of[one].left)
        for one in region_of(right, number, given)
        if one in matches.left_of
    )


def _agreed_of(side: Side, known: Mapping[int, Match]) -> dict[int, Match]:
    """Returns the matched results at which a region ends: not those of scalars and masks that differ."""
    return {number: match for number, match in known.items() if match.agrees or side.is_telling[number]}


def _from_the_whole(side: Side, inside: tuple[int, ...], known: Mapping[int, Match]) -> tuple[int, ...]:
    """Returns the results with what they are a slice of, as far as it is known by its parts alone: one may differ."""
    chain = [inside[0]]
    while side.results[chain[0]].sources and (side.does[chain[0]] in SLICING or side.is_passing[chain[0]]):
        source = side.results[chain[0]].sources[0]
        if source in known and known[source].part is None:
            return inside
        chain.insert(0, source)
    is_part = (
        any(side.does[number] in SLICING for number in _passed(side, chain[1:], inside)) and side.is_main[chain[0]]
    )
    return (*chain[:-1], *inside) if is_part else inside


def _passed(side: Side, chain: list[int], inside: tuple[int, ...]) -> list[int]:
    """Returns the results of a chain and of what follows inside it, up to the first that computes something."""
    found = list(chain)
    for number in inside:
        if side.does[number] not in SLICING and not side.is_passing[number]:
            break
        found.append(number)
    return found


def _may_begin(side: Side, number: int, differing: set[int]) -> bool:
    """Returns whether a difference may begin at a result inside a region: a step to a mask is a way like any other."""
    if not side.is_telling[number]:
        return False
    return side.eps[number] > 0 and (number in differing or side.is_main[number])


def alone_events(
    left: Side,
    right: Side,
    matches: Matches,
    differs: tuple[set[int], set[int]],
    local: Mapping[int, Local] | None = None,
) -> list[Event]:
    """Returns beginnings that show at no pair: the first results that differ and that only one side has."""
    measured = (local or {}).keys()
    lefts, rights = (
        alone_in(side, which, matches, differs[which], measured) for which, side in enumerate((left, right))
    )
    return [
        *(Event(None, (number,), (), first_use(left, number)) for number in lefts),
        *(Event(None, (), (number,), _order_of_right(left, right, matches, number)) for number in rights),
    ]


def _order_of_right(left: Side, right: Side, matches: Matches, number: int) -> float:
    """Returns the place in the left order just behind the matched results that a right one follows from."""

    def is_placed(source: int) -> bool:
        return matches.partner(1, source) is not None and right.results[source].kind == "op"

    sources = right.results[number].sources
    before = reachable(sources, lambda one: () if is_placed(one) else right.results[one].sources)
    best = max((float(matches.left_of[one].left) for one in before if is_placed(one)), default=-1.0)
    if best < 0 and right.execution.readers[number]:
        partners = [matches.partner(1, reader) for reader in right.execution.readers[number]]
        best = max((first_use(left, partner) - 1.0 for partner in partners if partner is not None), default=-1.0)
    return best + 0.5
