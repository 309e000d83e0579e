"""Tests whether two ops that do the same read other integers, such as indices and positions, and all else the same."""

from math import prod

import numpy as np

from nbkit.analysis.align.align import Alignment
from nbkit.analysis.align.events import Event
from nbkit.analysis.align.kinds.case import Case
from nbkit.analysis.align.kinds.rotary.positions import position_shifted
from nbkit.analysis.align.matches import Match
from nbkit.analysis.align.region import Array, Kind, Region
from nbkit.analysis.align.rerun import computing, explained, left_over, made_of, other_operands
from nbkit.analysis.align.side import Side

NAME = "other_indices"
LISTED, MOST_NAMES = 8, 3


def other_indices(alignment: Alignment, event: Event) -> Kind | None:
    """Tests whether a pair agrees once the right one reads the left one's integers.

    It lies where these are made on both sides; those that the program holds lie at the op that reads them.
    """
    for match in _readers(alignment, event):
        ends, numbers = _other(alignment, match)
        values = _values(alignment, *numbers)
        if values is not None and (rest := _rest(alignment, match, numbers, values)) is not None:
            if (shifted := position_shifted(Case(Region(*values)))) is not None:
                return shifted
            made = _made(alignment, *numbers)
            is_held = any(side.results[one].kind != "op" for side, one in zip(_sides(alignment), made, strict=True))
            return Kind(NAME, _message(alignment, ends[0], values, numbers), rest, ends if is_held else made)
    return None


def _values(alignment: Alignment, first: int, second: int) -> tuple[Array, Array] | None:
    """Returns two results of integers in one shape; null where they are none."""
    left, right = alignment.left.execution.value(first), alignment.right.execution.value(second)
    if left is None or right is None or left.dtype.kind not in "iu" or right.dtype.kind not in "iu":
        return None
    if left.size == right.size:
        return left, right.reshape(left.shape)
    try:
        left, right = np.broadcast_arrays(left, right)
    except ValueError:
        return None
    return left, right


def _sides(alignment: Alignment) -> tuple[Side, Side]:
    return alignment.left, alignment.right


def _readers(alignment: Alignment, event: Event) -> list[Match]:
    """Returns the pair itself, of numbers that an op makes; of integers and state first the pairs that read it."""
    match, left, right = event.match, alignment.left, alignment.right
    if match is None or (left.results[match.left].kind == "op" and left.eps[match.left]):
        return [] if match is None else [match]
    waiting, found = [match.right], list[Match]()
    for number in waiting:
        for reader in right.execution.readers[number]:
            pair = alignment.matches.left_of.get(reader)
            if reader not in waiting and (right.is_passing[reader] or not right.eps[reader]):
                waiting.append(reader)
            elif pair is not None and left.results[pair.left].kind == "op":
                found.append(pair)
    return found + [match] * (left.results[match.left].kind == "op")


def _other(alignment: Alignment, match: Match) -> tuple[tuple[int, int], tuple[int, int]]:
    """Returns the two ops between the pair and what both have that read one other operand, nearest to it; and that."""
    numbers = match.left, match.right
    while True:
        ends = computing(alignment.left, numbers[0]), computing(alignment.right, numbers[1])
        others = other_operands(alignment, *ends)
        if others is None or len(others) != 1:
            return ends, numbers
        numbers = others[0]
        if alignment.right.eps[numbers[1]] == 0:
            return ends, numbers


def _rest(alignment: Alignment, match: Match, numbers: tuple[int, int], values: tuple[Array, Array]) -> float | None:
    """Returns what of a pair's difference is left if both read the same integers; null where that is much."""
    local, error = alignment.local.get(match.right), alignment.error_of(match)
    if local is not None and error and local.error <= local.allowed:
        return local.error / error if np.isfinite(error) else 0.0
    left, right = (side.execution for side in _sides(alignment))
    shape = right.results[numbers[1]].shape
    if right.recompute is None or left.recompute is None or not error or match.relation is None:
        return 0.0 if right.recompute is None else None
    if values[0].size == prod(shape):
        return explained(alignment, match, {numbers[1]: values[0].reshape(shape)})
    found, own = left.recompute({numbers[0]: values[1]}, [match.left]).get(match.left), right.value(match.right)
    return None if found is None or own is None else left_over(match, found, own, error)


def _made(alignment: Alignment, first: int, second: int) -> tuple[int, int]:
    """Returns the last results in which two ways to integers differ by more than what they read."""
    left, right = alignment.left, alignment.right
    while True:
        ends = computing(left, first), computing(right, second)
        ours, theirs = left.results[ends[0]], right.results[ends[1]]
        is_same_call = (ours.op, ours.arguments) == (theirs.op, theirs.arguments)
        others = other_operands(alignment, *ends) if is_same_call else None
        if others is None or len(others) != 1 or others[0] == (first, second):
            return ends
        first, second = others[0]


def _message(alignment: Alignment, reader: int, values: tuple[Array, Array], numbers: tuple[int, int]) -> str:
    rows = [value.reshape(-1, value.shape[-1] if value.ndim else 1) for value in (values[0] != values[1], *values)]
    row, differ = int(np.flatnonzero(rows[0].any(-1))[0]), int(rows[0].sum())
    lists = [_listed(value[row]) for value in rows[1:]]
    how = f"{f' in row {row}' if row else ''}; {differ:,} of {rows[0].size:,} differ" if rows[0].size > 1 else ""
    op = alignment.left.results[reader].name
    text = f"The integers that {op} reads are {lists[0]} on the left, {lists[1]} on the right{how}."
    inputs = [_inputs(side, number) for side, number in zip(_sides(alignment), numbers, strict=True)]
    made = f" The left ones are made of {inputs[0]}, the right ones of {inputs[1]}." if inputs[0] != inputs[1] else ""
    return f"{text}{made}"


def _listed(row: Array) -> str:
    return ", ".join(map(str, row[:LISTED].tolist())) + (", ..." if len(row) > LISTED else "")


def _inputs(side: Side, number: int) -> str:
    """Returns the names of the inputs that a result is made of."""
    names = [side.results[one].name for one in made_of(side, number) if side.results[one].kind == "input"]
    return ", ".join(names[:MOST_NAMES]) + (", ..." if len(names) > MOST_NAMES else "") or "no input"
