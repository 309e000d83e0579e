"""Runs the right ops of a pair again, from the left one's values and some that a kind puts in their place."""

from collections.abc import Mapping

from nbkit.analysis.align.align import Alignment
from nbkit.analysis.align.errors import given_matches, given_value
from nbkit.analysis.align.matches import Match
from nbkit.analysis.align.region import Array
from nbkit.analysis.align.relations import relative_error

# What runs again explains a difference if so much of it, at most, is left.
LEFT_OVER = 0.1


def explained(alignment: Alignment, match: Match, instead: Mapping[int, Array]) -> float | None:
    """Returns how much of a pair's local error is left with other values by right result_id; null if that is much."""
    left, right = alignment.left, alignment.right
    local, recompute, expected = alignment.local.get(match.right), right.execution.recompute, left.value(match.left)
    if match.relation is None or local is None or recompute is None or expected is None or not local.error > 0:
        return None
    given = given_matches(left, right, alignment.matches, alignment.differing)
    values: dict[int, Array] = {one: given_value(left, pair) for one, pair in given.items() if one != match.right}
    found = recompute({**values, **instead}, [match.right])
    if match.right not in found:
        return None
    rest = relative_error(*match.relation.views(expected, found[match.right])) / local.error
    return rest if rest <= LEFT_OVER else None
