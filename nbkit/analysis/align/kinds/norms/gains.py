"""Tests whether the two sides multiply the channels of one value by other vectors, such as another gain of a norm."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from nbkit.analysis.align.kinds.case import Case, CaseSide, Floats, floats, head_rows, is_close, norm
from nbkit.analysis.align.kinds.norms.recorded import recorded_epsilon
from nbkit.analysis.align.kinds.registry import Kinds, kind_test
from nbkit.analysis.align.region import Kind

NAME = "other_weights"
NONE = "none"
EPSILON = 1e-5
# Values of the pair's shape that are tried.
TRIED = 4


@dataclass(frozen=True)
class Affine:
    """Holds the names of the gain and the bias of a side, and what they leave of the difference."""

    gain: str
    bias: str
    rest: float


# Before all others, as what is known says more than what is tried.
@kind_test(NAME, 0, lambda case: case.has_rows)
def other_gain(case: Case) -> Kinds:
    """Tests whether L = u g + b and R = u h + c, of a known u or its norm, with vectors that each side reads.

    A gain may have 1 added, or be left out. Where the gains are the same, it is no such kind.
    """
    rows = head_rows(case.left), head_rows(case.right)
    vectors = [_vectors(case, side) for side in case.sides]
    for unit in _units(case) if any(vectors) and norm(rows[1] - rows[0]) else ():
        left, right = (_fitted(case, unit, *one) for one in zip(rows, rows[::-1], vectors, strict=True))
        if left is not None and right is not None and left.gain != right.gain:
            yield Kind(NAME, _message(left, right), max(left.rest, right.rest))


def _message(left: Affine, right: Affine) -> str:
    if (left.gain, left.bias) == (right.bias, right.gain):
        return f"The right one multiplies by {right.gain} and adds {right.bias}, the left one does the reverse."
    message = f"The right one multiplies each channel by {right.gain}, the left one by {left.gain}"
    if NONE in (left.gain, right.gain):
        lacking, other = ("right", left) if right.gain == NONE else ("left", right)
        message = f"The {lacking} one lacks the gain {other.gain}"
    if left.bias == right.bias:
        return f"{message}."
    first, second = ("nothing" if one.bias == NONE else one.bias for one in (left, right))
    return f"{message}; the right one adds {second}, the left one {first}."


def _vectors(case: Case, side: CaseSide) -> list[tuple[str, Floats]]:
    """Returns the vectors that a side reads, by name; what is 1 more than a parameter is called that."""
    width = case.shape[-1]
    known = [(one, floats(one.value).reshape(-1)) for one in case.known if _is_vector(one.value.shape, width)]
    found = []
    for one, vector in known:
        if not (one.is_left if side.name == "left" else one.is_right):
            continue
        of = (other.name for other, beside in known if other.kind == "parameter" and is_close(vector, 1 + beside, 1e-6))
        found.append((one.name if one.kind == "parameter" else next((f"1 + {name}" for name in of), one.name), vector))
    return found


def _is_vector(shape: tuple[int, ...], width: int) -> bool:
    return bool(shape) and shape[-1] == width and int(np.prod(shape)) == width


def _units(case: Case) -> Iterator[Floats]:
    told = map(recorded_epsilon, case.sides)
    epsilon = next((one.value for one in told if one is not None), EPSILON)
    for _, view in list(case.shaped(case.shape))[:TRIED]:
        if view.dtype == np.bool_:
            continue
        rows = head_rows(view)
        yield rows
        for centered in (rows, rows - rows.mean(-1, keepdims=True)):
            yield centered / np.sqrt((centered**2).mean(-1, keepdims=True) + epsilon)


def _fitted(
    case: Case, unit: Floats, wanted: Floats, beside: Floats, vectors: list[tuple[str, Floats]]
) -> Affine | None:
    """Returns the gain and the bias with which a side is made of a value; null if none does."""
    gains = [(name, vector) for name, vector in vectors]
    gains += [(f"1 + {name}", 1 + vector) for name, vector in vectors]
    gains.append((NONE, np.ones(unit.shape[-1])))
    best = None
    for gain, factors in gains:
        scaled = unit * factors
        for bias, vector in (*vectors, (NONE, np.zeros(unit.shape[-1]))):
            rest = case.rest(scaled + vector, wanted, beside)
            if (bias == NONE or bias != gain) and rest <= case.limit and (best is None or rest < best.rest):
                best = Affine(gain, bias, rest)
    return best
