"""Aligns two executions: matches their results, measures the pairs, and says where they first diverge."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from nbkit.analysis.align.allowance import NARROW
from nbkit.analysis.align.beginnings.draws import drawn_events
from nbkit.analysis.align.beginnings.returned import (
    match_returned,
    mistaken_outputs,
    output_events,
    told,
    with_returned,
)
from nbkit.analysis.align.beginnings.spoiled import spoiled_events
from nbkit.analysis.align.differing import differing
from nbkit.analysis.align.errors import Local, LocalErrors, error_of, given_matches, region_of
from nbkit.analysis.align.events import Event, events
from nbkit.analysis.align.matches import Match, Matches
from nbkit.analysis.align.matching.by_context import (
    match_names,
    match_neighbours,
    match_outputs,
    match_same_calls,
    match_structure,
)
from nbkit.analysis.align.matching.by_leaf import match_gradients
from nbkit.analysis.align.matching.by_part import match_parts
from nbkit.analysis.align.matching.by_position import match_positions
from nbkit.analysis.align.matching.by_value import match_values, same_of, tolerance_of
from nbkit.analysis.align.matching.given import match_given
from nbkit.analysis.align.matching.neutral import farther_matches, neutral_matches
from nbkit.analysis.align.side import Side
from nbkit.step.reachable import reachable
from nbkit.trace.executions.execution import Execution

STATE = ("input", "parameter", "buffer", "constant")
# State is no result of computing: it is copied, cast, or folded by an exporter; in a narrow dtype it is rounded once.
COPY, NARROW_COPY = 4.0, 1.0
# In a narrow dtype what follows from a difference differs, too, if it does by so many eps.
NARROW_SAME = 2.0


@dataclass(frozen=True)
class Alignment:
    """Holds two executions with their matches.

    `differing` are the results of each side that differ to the end; `errors` are those of all matches, in their order,
    null where values are not known; `local` is by right result_id; `events` are where differences begin; `tolerance`
    is the relative error up to which results count as the same. `origins` has by result_id of each side the number of
    the event that a result goes back to, where that is known otherwise than by what it reads.
    """

    left: Side
    right: Side
    matches: Matches
    tolerance: float
    differing: tuple[set[int], set[int]] = (set(), set())
    errors: tuple[float | None, ...] = ()
    local: dict[int, Local] = field(default_factory=dict)
    events: tuple[Event, ...] = ()
    origins: tuple[Mapping[int, int], Mapping[int, int]] = field(default_factory=lambda: ({}, {}))

    def error_of(self, match: Match) -> float | None:
        """Returns the error of a match; null where values are not known."""
        return self._errors[id(match)]

    def is_missing(self, match: Match) -> bool:
        """Returns whether a pair agrees by its statistics alone, as values of a side are not known."""
        is_missing = self.left.is_missing(match.left) or self.right.is_missing(match.right)
        return match.agrees and is_missing and match.part is None and self.error_of(match) is None

    @cached_property
    def _errors(self) -> dict[int, float | None]:
        return {id(match): error for match, error in zip(self.matches.all, self.errors, strict=True)}


def align(left: Execution, right: Execution) -> Alignment:
    """Returns the alignment of two executions.

    Results are matched by values first, then by names, then by what stands around them; what differs to the end is
    matched by the graph. The right execution runs again from the left one's values where it can.
    """
    sides = with_returned(left, right)
    matches, tolerance = Matches(), tolerance_of(*sides)
    match_returned(*sides, matches)
    match_values(*sides, matches, tolerance)
    match_names(*sides, matches)
    match_positions(*sides, matches)
    matches.remove([*neutral_matches(*sides, matches)])
    matches.remove([*farther_matches(*sides, matches), *mistaken_outputs(*sides, matches)])
    match_outputs(*sides, matches)
    match_neighbours(*sides, matches)
    match_parts(*sides, matches, tolerance)
    match_gradients(*sides, matches)
    match_same_calls(*sides, matches)
    measured = LocalErrors(*sides)
    matches.replace(_doubted(*sides, matches, measured.of(matches, (set(), set()))))
    differs = differing(*sides, matches)
    match_structure(*sides, matches, differs)
    match_given(*sides, matches)
    matches.remove(_mistaken(sides[1], matches, differs, measured))
    differs = differing(*sides, matches)
    matches.replace(blank_agree(*sides, matches))
    state = state_of(*sides, matches, differs, measured)
    local = measured.of(matches, differs, state.harmless)
    begins = [*drawn_events(*sides, matches), *events(*sides, matches, differs, local, state.differing)]
    if not begins:
        matches.replace([*_rounded_alone(matches, local), *_rounded_state(*sides, matches)])
        matches.replace(_again(*sides, matches))
    begins = [*spoiled_events(*sides, matches, differs, begins), *begins]
    begins = begins or output_events(*sides, matches)
    ordered = tuple(told(*sides, event) for event in sorted(begins, key=lambda event: event.order))
    errors = tuple(error_of(*sides, match) for match in matches.all)
    return Alignment(*sides, matches, tolerance, differs, errors, local, ordered)


def _mistaken(right: Side, matches: Matches, differs: tuple[set[int], set[int]], measured: LocalErrors) -> list[Match]:
    """Returns matches by structure that do not compute the same, and without which all behind them do: mistakes."""
    local = measured.of(matches, differs)
    wrong = {
        number: matches.left_of[number]
        for number, found in local.items()
        if found.error > found.allowed and matches.left_of[number].evidence == "structure"
    }
    if not wrong:
        return []
    without = Matches()
    for match in matches.all:
        if match.right not in wrong:
            without.add(match)
    again = measured.of(without, differs)
    return [match for number, match in wrong.items() if _ends_well(right, number, again)]


def _ends_well(side: Side, number: int, local: dict[int, Local]) -> bool:
    """Returns whether the nearest measured results behind a result all compute the same; there has to be one."""
    readers = side.execution.readers
    behind = reachable(readers[number], lambda one: () if one in local else readers[one])
    nearest = [local[one] for one in behind if one in local]
    return bool(nearest) and all(found.error <= found.allowed for found in nearest)


def _doubted(left: Side, right: Side, matches: Matches, local: dict[int, Local]) -> Iterator[tuple[Match, Match]]:
    """Yields matches that are near but not the same.

    They differ by more than the ops since the nearest other ones may add, or they follow from such a match and are no
    nearer than rounding. Where nothing can be computed again, errors beyond rounding are what tells.
    """
    coarsest = max(left.coarsest, right.coarsest)
    same = NARROW_SAME * coarsest if coarsest >= NARROW else same_of(left, right)
    doubtful: set[int] = set()
    for match in sorted(matches.all, key=lambda match: match.right):
        if not match.agrees and matches.left_of[match.right] is match:
            doubtful.add(match.right)
            continue
        if match.agrees and right.results[match.right].kind != "op":
            error = error_of(left, right, match)
            eps = max(left.eps[match.left], right.eps[match.right])
            if error is not None and error > (NARROW_COPY if eps >= NARROW else COPY) * eps:
                doubtful.add(match.right)
                yield match, replace(match, agrees=False)
            continue
        found = local.get(match.right)
        is_clean = found is not None and found.error <= found.allowed and doubtful.isdisjoint(found.read)
        if match.agrees and right.results[match.right].kind == "op" and not is_clean:
            error = error_of(left, right, match)
            is_off = found is not None and found.error > found.allowed
            if is_off or (error is not None and error > same):
                doubtful.add(match.right)
                yield match, replace(match, agrees=False)


def blank_agree(left: Side, right: Side, matches: Matches) -> list[tuple[Match, Match]]:
    """Returns matches of results that have nothing to compare on either side, as ones that agree."""
    return [
        (match, replace(match, agrees=True))
        for match in matches.all
        if not match.agrees and left.is_blank[match.left] and right.is_blank[match.right] and match.relation is not None
    ]


def _again(left: Side, right: Side, matches: Matches) -> list[tuple[Match, Match]]:
    """Returns matches of results that are there once more, with the values of one that agrees, as ones that agree."""
    return [
        (match, replace(match, agrees=True))
        for match in matches.all
        if not match.agrees and matches.left_of[match.right].agrees
        if error_of(left, right, match) == error_of(left, right, matches.left_of[match.right])
    ]


def _rounded_state(left: Side, right: Side, matches: Matches) -> Iterator[tuple[Match, Match]]:
    """Yields matches of what is no op's that differ by the rounding of their dtype, as ones that agree."""
    for match in matches.left_of.values():
        error = error_of(left, right, match)
        is_state = "op" not in (left.results[match.left].kind, right.results[match.right].kind)
        eps = max(left.eps[match.left], right.eps[match.right])
        if is_state and not match.agrees and error is not None and error <= eps:
            yield match, replace(match, agrees=True)


def _rounded_alone(matches: Matches, local: Mapping[int, Local]) -> Iterator[tuple[Match, Match]]:
    """Yields matches whose ops read what agrees and do the same, as ones that agree: rounding is large beside them.

    Such is the mean of a norm's input, where that is nearly zero.
    """
    agreeing = {match.right for match in matches.left_of.values() if match.agrees}
    for number in sorted(local):
        match, found = matches.left_of[number], local[number]
        if found.error <= found.allowed and (match.agrees or agreeing.issuperset(found.read)):
            agreeing.add(number)
            if not match.agrees:
                yield match, replace(match, agrees=True)


@dataclass(frozen=True)
class State:
    """Holds pairs of state that differ and change results, and right_ids of those that differ and change none.

    State of the second kind is another form of the same: a folded constant, a weight that the right model holds turned.
    """

    differing: tuple[Match, ...] = ()
    harmless: frozenset[int] = frozenset()


def state_of(
    left: Side, right: Side, matches: Matches, differs: tuple[set[int], set[int]], measured: LocalErrors
) -> State:
    """Returns the differing state of both sides.

    The right execution runs once more on the left one's values with its own state: where the next matched results come
    out as on the left, the state does what it should; where they do not, it is to blame. Where nothing can run again,
    state differs that leads to no result that agrees.
    """
    pairs = [
        match
        for match in matches.all
        if not match.agrees
        and match.part is None
        and left.results[match.left].kind in STATE
        and right.results[match.right].kind in STATE
    ]
    if not pairs:
        return State()
    given = given_matches(left, right, matches, differs)
    own = frozenset(match.right for match in pairs if match.right in given)
    found = measured.of(matches, differs, own) if own else {}
    known = given.keys() - own
    seen: set[int] = set()
    matters: set[int] = set()
    for number, local in found.items():
        read = own.intersection(region_of(right, number, known))
        seen |= read
        if local.error > local.allowed:
            matters |= read
    differing = [
        match
        for match in pairs
        if (match.right in matters if match.right in seen else match.left in differs[0] and match.right in differs[1])
    ]
    return State(tuple(differing), frozenset(seen - matters))
