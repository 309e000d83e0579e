"""Finds which inputs, parameters, buffers and constants of a pair differ in a way that matters."""

from dataclasses import dataclass

from nbkit.analysis.align.errors import LocalErrors, given_matches, region_of
from nbkit.analysis.align.matches import Match, Matches
from nbkit.analysis.align.side import Side

STATE = ("input", "parameter", "buffer", "constant")


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
