"""Tests whether the right one has the positions of the left one, some further along: ids, tables, turned values."""

import numpy as np

from nbkit.analysis.align.kinds.case import Case, Floats, floats, norm, shifts
from nbkit.analysis.align.kinds.orders import keys
from nbkit.analysis.align.kinds.registry import Kinds, kind_test
from nbkit.analysis.align.kinds.rotary.base import step_frequencies
from nbkit.analysis.align.kinds.rotary.turns import fitted, position_axes, turned, turns
from nbkit.analysis.align.region import Kind

NAME = "position_shifted"
MOST_SHIFT = 32
# Rows of an embedding's table that stand before the first position.
MOST_START = 4


@kind_test(NAME, 80, lambda case: case.is_same_shape and case.is_finite and not case.is_boolean)
def position_shifted(case: Case) -> Kinds:
    """Tests position ids, rows of tables, values turned by further angles, and values with further rows added."""
    yield _ids(case)
    if case.is_clear:
        yield from _rows(case)
        yield from _turned(case)
        yield from _added(case)


def _message(shift: int, what: str) -> str:
    return f"{what} of the right one are those of the left one shifted by {shift}: its first is the left one's {shift}."


def _ids(case: Case) -> Kind | None:
    is_integer = all(np.issubdtype(one.dtype, np.integer) for one in (case.region.left, case.region.right))
    if not is_integer or not case.shape or case.shape[-1] < 2 or case.region.kind == "parameter":
        return None
    change = case.right - case.left
    shift = int(change.reshape(-1)[0])
    if shift == 0 or (change != shift).any() or abs(shift) > 1024 or (np.diff(case.left, axis=-1) != 1).any():
        return None
    return Kind(NAME, f"The position ids of the right one are those of the left one plus {shift}.", 0.0)


def _rows(case: Case) -> Kinds:
    """Tests rows along an axis, of which those at one end are new."""
    for axis in position_axes(len(case.shape)) if len(case.shape) >= 2 else ():
        rows = case.shape[axis]
        if rows < 4:
            continue
        left, right = keys(case, axis)
        for shift in shifts(min(MOST_SHIFT, rows // 2)):
            ours, theirs = _overlap(rows, shift)
            change = norm(right[theirs] - left[theirs])
            if not change or norm(right[theirs] - left[ours]) > case.limit * change or _is_wrapped(left, right, shift):
                continue
            first, second = (np.moveaxis(one, axis, 0) for one in (case.left, case.right))
            message = _message(shift, f"The rows along axis {axis}")
            yield case.fits(NAME, message, first[ours], second[theirs], first[theirs])


def _overlap(rows: int, shift: int) -> tuple[slice, slice]:
    """Returns which rows of the left one stand where in the right one."""
    return slice(max(shift, 0), rows + min(shift, 0)), slice(max(-shift, 0), rows - max(shift, 0))


def _is_wrapped(left: Floats, right: Floats, shift: int) -> bool:
    """Returns whether the rows at the end come in at the other side, as no positions do."""
    return norm(right - np.roll(left, -shift, axis=0)) <= 1e-2 * norm(right - left)


def _turned(case: Case) -> Kinds:
    for turn in turns(case):
        steps = fitted(turn.x, turn.right, turn.layout, turn.width, turn.axis, case.limit)
        if steps is None or len(steps) < 2:
            continue
        inverse = step_frequencies(turn.steps)
        for shift in shifts(MOST_SHIFT):
            candidate = turned(turn.x, turn.steps * np.exp(1j * shift * inverse), turn.layout, turn.axis)
            text = f"The positions by which {turn.name} is turned are those of the left one plus {shift}."
            yield case.fits(NAME, text, candidate, turn.right, turn.left)


def _added(case: Case) -> Kinds:
    """Tests L + P[j + k] - P[j] for a known table P of positions."""
    if len(case.shape) < 2:
        return
    *_, rows, width = case.shape
    change = (case.right - case.left).reshape(-1, rows, width)
    for one in case.known:
        if one.value.ndim != 2 or one.value.shape[1] != width or one.value.shape[0] <= rows:
            continue
        table = floats(one.value[: rows + MOST_START + MOST_SHIFT])
        for first in range(min(MOST_START, len(table) - rows) + 1):
            for second in range(min(MOST_START, len(table) - rows) + 1):
                moved = table[second : second + rows] - table[first : first + rows]
                if first == second or norm(change[0] - moved) > case.limit * norm(change[0]):
                    continue
                message = f"The added rows of {one.name} begin at {first} on the left, {second} on the right."
                candidate = case.left + (change * 0 + moved).reshape(case.shape)
                yield case.fits(NAME, message, candidate, case.right, case.left)
