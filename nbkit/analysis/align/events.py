"""Finds where differences begin: what a pair's own ops add, state that is not the same, and what one side alone does."""

from dataclasses import dataclass

from nbkit.analysis.align.differing import roots
from nbkit.analysis.align.errors import Local, region_of
from nbkit.analysis.align.matches import Match, Matches
from nbkit.analysis.align.side import Side

STATE = ("input", "parameter", "buffer", "constant")


@dataclass(frozen=True)
class Event:
    """Holds one beginning: the pair at which it shows, and the results of each side in which it lies.

    `left` and `right` are in the order of their execution, the pair's last, without what agrees; empty where a side has
    nothing there. `match` is null where there is no pair.
    """

    match: Match | None
    left: tuple[int, ...]
    right: tuple[int, ...]
    order: float


def events(
    left: Side, right: Side, matches: Matches, differs: tuple[set[int], set[int]], local: dict[int, Local]
) -> list[Event]:
    """Returns all beginnings in the order of the left execution."""
    found = [*_state_events(left, right, matches, differs), *_local_events(left, right, matches, local)]
    known = {number for event in found for number in event.left}, {number for event in found for number in event.right}
    found += _alone(left, right, matches, differs, known)
    return sorted(found, key=lambda event: event.order)


def _state_events(left: Side, right: Side, matches: Matches, differs: tuple[set[int], set[int]]) -> list[Event]:
    """Returns pairs of inputs, parameters, buffers and constants whose values differ."""
    return [
        Event(match, (match.left,), (match.right,), first_use(left, match.left))
        for match in matches.all
        if not match.agrees
        and match.part is None
        and left.results[match.left].kind in STATE
        and right.results[match.right].kind in STATE
        and match.left in differs[0]
        and match.right in differs[1]
    ]


def first_use(side: Side, number: int) -> float:
    """Returns the place of a result in the order of its execution; of state just before the op that reads it first."""
    readers = side.execution.readers[number]
    return number if side.results[number].kind == "op" or not readers else readers[0] - 0.5


def _local_events(left: Side, right: Side, matches: Matches, local: dict[int, Local]) -> list[Event]:
    sure = {number for number, match in matches.left_of.items()}, {number for number, match in matches.right_of.items()}
    found = []
    for number, what in sorted(local.items()):
        if what.error <= what.allowed:
            continue
        match = matches.left_of[number]
        inside = [
            tuple(one for one in region_of(side, end, known) if one == end or one not in known)
            for side, end, known in (
                (left, match.left, dict.fromkeys(sure[1])),
                (right, number, dict.fromkeys(sure[0])),
            )
        ]
        found.append(Event(match, inside[0], inside[1], first_use(left, min(inside[0]))))
    return found


def _alone(
    left: Side,
    right: Side,
    matches: Matches,
    differs: tuple[set[int], set[int]],
    known: tuple[set[int], set[int]],
) -> list[Event]:
    """Returns beginnings that show at no pair: the first results that differ and that only one side has, two by two."""
    sides = left, right
    lone = [
        [number for number in roots(side, differs[which]) if number not in matches.of(which)]
        for which, side in enumerate(sides)
    ]
    free = [[number for number in numbers if number not in known[which]] for which, numbers in enumerate(lone)]
    found = []
    for which, numbers in enumerate(free):
        for number in numbers:
            order = first_use(left, number) if which == 0 else _order_of_right(left, right, matches, number)
            ends = ((number,), ()) if which == 0 else ((), (number,))
            found.append(Event(None, *ends, order))
    return found


def _order_of_right(left: Side, right: Side, matches: Matches, number: int) -> float:
    """Returns the place in the left order just behind what a right result follows from."""
    waiting, seen = list(right.results[number].sources), set[int]()
    best = -1.0
    while waiting:
        source = waiting.pop()
        partner = matches.partner(1, source)
        if partner is not None and right.results[source].kind == "op":
            best = max(best, float(partner))
        elif source not in seen:
            seen.add(source)
            waiting += right.results[source].sources
    if best < 0 and right.execution.readers[number]:
        partners = [matches.partner(1, reader) for reader in right.execution.readers[number]]
        best = max((first_use(left, partner) - 1.0 for partner in partners if partner is not None), default=-1.0)
    return best + 0.5
