"""Says what stands against "the two agree" where no difference was found: unknown values, other arguments."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from nbkit.analysis.align.align import Alignment
from nbkit.analysis.align.allowance import NARROW, region_of
from nbkit.analysis.align.errors import given_matches
from nbkit.analysis.align.matches import Match
from nbkit.analysis.align.matching.by_value import same_of
from nbkit.analysis.align.side import Side
from nbkit.divergence.arguments import Pairs, in_words, other_arguments
from nbkit.units import count, counted, general

# In a narrow dtype a statistic of right results differs by up to so many eps: the largest element by half of one.
NARROW_SAME = 4.0
# A statistic has to differ by so many times as much as those of what an op reads, for its difference to begin there.
STEP = 8.0


def not_known(alignment: Alignment) -> dict[str, Any] | None:
    """Returns of how many pairs statistics alone are known, and of how many those differ; null where there are none.

    `first` and `error` are the name and the difference of the first pair whose statistics differ beyond rounding though
    those of what it reads do not; null where there is none.
    """
    pairs = [match for match in alignment.matches.all if alignment.is_missing(match)]
    if not pairs:
        return None
    left, right = alignment.left, alignment.right
    distances = {match.left: statistics_error(left, right, match) for match in alignment.matches.all}
    limit = _limit(left, right)
    differing = [match for match in pairs if distances[match.left] > limit]
    first = next((match for match in differing if _begins(left, match, distances)), None)
    return {
        "results": len(pairs),
        "differ": len(differing) if first else 0,
        "first": None if first is None else left.results[first.left].name,
        "error": None if first is None else distances[first.left],
    }


def _begins(side: Side, match: Match, distances: dict[int, float]) -> bool:
    read = [distances.get(source, np.inf) for source in side.results[match.left].sources]
    return distances[match.left] > STEP * max(read, default=0.0)


def _limit(left: Side, right: Side) -> float:
    eps = max(left.coarsest, right.coarsest)
    return NARROW_SAME * eps if eps >= NARROW else same_of(left, right)


def statistics_error(left: Side, right: Side, match: Match) -> float:
    """Returns the largest difference of rms, mean and extremes of a pair, over rms; inf where NaN or Inf differ."""
    pair = left.moments[match.left], right.moments[match.right]
    if np.isnan(pair[0][0]) or np.isnan(pair[1][0]):
        return 0.0
    if (pair[0][5:] != pair[1][5:]).any():
        return float("inf")
    scale = float(max(pair[0][0], pair[1][0])) or 1.0
    # Of a tensor of zeros the others are not over rms.
    values = [np.concatenate([row[:1], row[[1, 3, 4]] * (row[0] or 1.0)]) for row in pair]
    return float(np.abs(values[0] - values[1]).max() / scale)


def doubts(alignment: Alignment) -> list[str]:
    """Returns sentences on pairs whose ops got other arguments, and on what one side alone does in a narrow dtype."""
    return [*_other_arguments(alignment), *_alone(alignment)]


def _other_arguments(alignment: Alignment) -> Iterator[str]:
    """Yields a sentence for each set of arguments that differ, where they change a result or are other numbers."""
    left, right = alignment.left, alignment.right
    found: dict[str, list[Match]] = {}
    for match in alignment.matches.left_of.values():
        ours, theirs = left.results[match.left], right.results[match.right]
        if ours.op != theirs.op or not (ours.arguments and theirs.arguments):
            continue
        others = other_arguments(ours.arguments, theirs.arguments)
        local = alignment.local.get(match.right)
        if others and ((local is not None and local.error > 0) or _has_other_numbers(others)):
            found.setdefault(f"{ours.op} has other arguments: {in_words(others)}", []).append(match)
    for words, matches in found.items():
        errors = [local.error for match in matches if (local := alignment.local.get(match.right)) is not None]
        places = f"{words} ({left.results[matches[0].left].name}{_more(len(matches))})"
        size = f"; what it gives differs by {general(max(errors), 2)} for that" if max(errors, default=0.0) > 0 else ""
        yield f"{places}{size}."


def _more(places: int) -> str:
    return f" and {count(places - 1)} more" if places > 1 else ""


def _has_other_numbers(others: Pairs) -> bool:
    """Returns whether an argument is a fraction on both sides, such as an epsilon: no axis, no size."""
    return any(all(isinstance(value, float) for value in pair) for pair in others.values())


def _alone(alignment: Alignment) -> Iterator[str]:
    """Yields a sentence on what one side alone does in a narrow dtype, if it changes what it leads to."""
    left, right, names = alignment.left, alignment.right, dict[str, None]()
    given = given_matches(left, right, alignment.matches, alignment.differing)
    lefts, worst, eps = {match.left for match in given.values()}, 0.0, 0.0
    for number, local in alignment.local.items():
        match = alignment.matches.left_of.get(number)
        if match is None or local.eps < NARROW or not 0 < local.error < np.inf:
            continue
        steps = [
            side.results[one].name
            for side, end, known, taken in (
                (left, match.left, lefts, alignment.matches.right_of),
                (right, number, given, alignment.matches.left_of),
            )
            for one in region_of(side, end, known)
            if one not in known and one not in taken and side.is_main[one] and not side.is_passing[one]
        ]
        if steps:
            names |= dict.fromkeys(steps)
            worst, eps = max(worst, local.error), max(eps, local.eps)
    if names:
        what = f"{next(iter(names))}" + (f" and {counted(len(names) - 1, 'other op')}" if len(names) > 1 else "")
        is_one = len(names) == 1
        yield (
            f"{what} {'is' if is_one else 'are'} on one side only and {'changes' if is_one else 'change'} what "
            f"{'it leads' if is_one else 'they lead'} to by up to {general(worst, 2)}, which the rounding of a dtype "
            f"with an eps of {general(eps, 2)} may do."
        )
