"""Compares what the ops of a pair read, and runs the right ones again with values that a kind puts in their place."""

from collections.abc import Callable, Mapping

import numpy as np

from nbkit.analysis.align.align import Alignment
from nbkit.analysis.align.errors import given_matches, given_value
from nbkit.analysis.align.matches import Match
from nbkit.analysis.align.region import Array
from nbkit.analysis.align.relations import relative_error
from nbkit.analysis.align.side import Side
from nbkit.step.reachable import reachable

# What runs again explains a difference if so much of it, at most, is left.
LEFT_OVER = 0.1


def explained(alignment: Alignment, match: Match, instead: Mapping[int, Array]) -> float | None:
    """Returns how much of a pair's local error is left with other values by right result_id; null if that is much.

    Of results that are no pair of the alignment's it is their whole error.
    """
    left, right = alignment.left, alignment.right
    local, recompute, expected = alignment.local.get(match.right), right.execution.recompute, left.value(match.left)
    actual = right.value(match.right)
    if match.relation is None or recompute is None or expected is None or actual is None:
        return None
    error = relative_error(*match.relation.views(expected, actual)) if local is None else local.error
    if not error > 0:
        return None
    given = given_matches(left, right, alignment.matches, alignment.differing)
    values: dict[int, Array] = {one: given_value(left, pair) for one, pair in given.items() if one != match.right}
    found = recompute({**values, **instead}, [match.right])
    if match.right not in found:
        return None
    return left_over(match, expected, found[match.right], error)


def left_over(match: Match, left: Array, right: Array, error: float) -> float | None:
    """Returns how much of an error two values of a pair leave; null where that is much, or no relation is known."""
    if match.relation is None or not error > 0:
        return None
    rest = relative_error(*match.relation.views(left, right)) / error
    return rest if rest <= LEFT_OVER else None


def computing(side: Side, number: int) -> int:
    """Returns the op whose result a view of it shows."""
    while side.is_passing[number] and side.results[number].kind == "op":
        number = side.results[number].sources[0]
    return number


def made_of(side: Side, number: int, goes_on: Callable[[int], bool] = lambda _: True) -> list[int]:
    """Returns a result and all that it is made of, in call order; what is behind others only where one `goes_on`."""
    return sorted(reachable([number], lambda one: side.results[one].sources if goes_on(one) else ()))


def other_operands(alignment: Alignment, first: int, second: int) -> list[tuple[int, int]] | None:
    """Returns the pairs of operands of two ops that are not the same; null where the ops do not do the same."""
    left, right = alignment.left, alignment.right
    ours, theirs = left.results[first].sources, right.results[second].sources
    if left.does[first] != right.does[second] or len(ours) != len(theirs):
        return None
    return [pair for pair in zip(ours, theirs, strict=True) if not is_same(alignment, *pair)]


def is_same(alignment: Alignment, first: int, second: int) -> bool:
    """Returns whether two operands are a pair that agrees, or numbers that are equal; integers to the last one."""
    match = alignment.matches.left_of.get(second)
    if match is not None and match.agrees and match.left == first:
        return True
    values = alignment.left.value(first), alignment.right.value(second)
    if values[0] is None or values[1] is None or values[0].size != values[1].size:
        return False
    flat = values[0].reshape(-1), values[1].reshape(-1)
    if {value.dtype.kind for value in flat} <= {*"iub"}:
        return bool(np.array_equal(*flat))
    return relative_error(*flat) <= alignment.tolerance / 10
