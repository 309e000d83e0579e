"""Finds buffers that a cast has spoiled: their rounding grows to far more in what is made of them."""

from collections.abc import Iterator
from dataclasses import replace

from nbkit.analysis.align.errors import error_of
from nbkit.analysis.align.events import Event, first_use
from nbkit.analysis.align.matches import Match, Matches
from nbkit.analysis.align.side import Side
from nbkit.step.reachable import reachable
from nbkit.units import general

# A copy in the same dtype differs by less; a result rounded to a dtype by 0.3 of its eps, as 2-norms.
COPY, GROWN = 4.0, 2.0


def spoiled_events(
    left: Side, right: Side, matches: Matches, differs: tuple[set[int], set[int]], begins: list[Event]
) -> Iterator[Event]:
    """Yields a beginning for each buffer that one side holds in a narrower dtype than the other one holds its values.

    So a model in bfloat16 has rounded the frequencies of rotary positions: times a position of thousands, that is no
    rounding of the angle any more. What is off for it agrees no more, and is in `differs` from here on.
    """
    known = {event.match.right for event in begins if event.match is not None}
    for match in [*matches.all]:
        which = _narrow_side(left, right, match)
        if which is None:
            continue
        behind = _behind(right, match.right, known)
        off = [number for number in behind if _is_off(left, right, matches, number, match)]
        first = next((matches.left_of[number] for number in off if not right.is_main[number]), None)
        if first is None:
            continue
        pairs = [match, *(matches.left_of[number] for number in off)]
        changed = [(pair, replace(pair, agrees=False)) for pair in pairs]
        error, grown = (general(error_of(left, right, pair) or 0.0, 2) for pair in (match, first))
        matches.replace(changed)
        differs[1].update([match.right, *behind])
        differs[0].update(matches.left_of[number].left for number in behind if number in matches.left_of)
        ours, theirs = left.results[match.left], right.results[match.right]
        narrow, wide = (ours, theirs) if which == 0 else (theirs, ours)
        message = (
            f"the buffer {narrow.name} is rounded to {narrow.dtype} on the {('left', 'right')[which]} side (relative "
            f"error {error}), and what is made of it differs by more than rounding ({right.results[first.right].name}: "
            f"{grown}); keep it in {wide.dtype}"
        )
        yield Event(changed[0][1], (match.left,), (match.right,), first_use(left, match.left), message=message)


def _narrow_side(left: Side, right: Side, match: Match) -> int | None:
    """Returns the side of a pair that agrees but for a cast and is a buffer there, in the narrower dtype."""
    eps = left.eps[match.left], right.eps[match.right]
    if eps[0] == eps[1] or not all(eps) or not match.agrees or match.part is not None:
        return None
    which = int(eps[1] > eps[0])
    narrow = (left.results[match.left], right.results[match.right])[which]
    error = error_of(left, right, match)
    return which if narrow.kind == "buffer" and error is not None and error > COPY * min(eps) else None


def _behind(side: Side, number: int, known: set[int]) -> list[int]:
    """Returns what is made of a result, but for what begins elsewhere."""
    made = reachable([number], lambda one: set(side.execution.readers[one]) - known)
    return sorted(one for one in made if one != number)


def _is_off(left: Side, right: Side, matches: Matches, number: int, buffer: Match) -> bool:
    match = matches.left_of.get(number)
    error = None if match is None else error_of(left, right, match)
    eps = max(left.eps[buffer.left], right.eps[buffer.right])
    return error is not None and error > GROWN * eps and right.eps[number] > 0
