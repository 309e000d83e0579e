"""Tests kinds in which the right one is the left one times a number, or plus something that both sides have."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from nbkit.analysis.align.kinds.case import (
    FEWEST,
    Case,
    CaseSide,
    Floats,
    Known,
    at,
    floats,
    is_close,
    norm,
    number_text,
)
from nbkit.analysis.align.kinds.norms.place import missing_before_norm
from nbkit.analysis.align.kinds.registry import Kinds, kind_test
from nbkit.analysis.align.region import Array, Kind
from nbkit.ops.kinds import PASSING, op_kind

# A factor is read as that of a dimension if it is within this.
READ = 1e-4
# Beside a bias the values vary by this share at least.
SPREAD = 1e-3
# Numbers that say nothing about an axis, whatever its size.
HALVES = (2.0, 0.5)
SUMS = ("add", "subtract")
# Ops that add something to something, whatever else they do, have this in their names.
ADDING = ("add", "sub", "sum", "skip", "fused", "linear", "gemm", "conv", "lerp", "mean", "cat", "einsum", "matmul")
# Two values that are the same on both sides.
SAME = 1e-5


@dataclass(frozen=True)
class Factor:
    """Holds the number by which the right one is the left one, in words, how it is read, and what it leaves."""

    text: str
    reading: str
    rest: float


def factor_of(case: Case) -> Factor | None:
    """Returns the one number by which the right one is the left one, read as a dimension's root; null if it is not.

    A number that rounds to 1 is none: what differs then is something else.
    """
    if not case.is_comparable or case.is_boolean or np.count_nonzero(case.left) < FEWEST:
        return None
    left = case.left.reshape(-1)
    factor = float(left @ case.right.reshape(-1)) / max(float(left @ left), 1e-300)
    if not 1e-6 <= abs(factor) <= 1e6:
        return None
    shown = number_text(float(f"{factor:.3g}") if abs(factor / float(f"{factor:.3g}") - 1) < READ else factor)
    rest = case.rest(factor * case.left, case.right, case.left)
    if shown == "1" or rest > case.limit:
        return None
    return Factor(shown, reading_of(factor, case.dimensions, max(READ, case.eps)), rest)


@kind_test("scale", 130)
def scale(case: Case) -> Kinds:
    """Tests whether the right one is the left one times one number."""
    if (found := factor_of(case)) is not None:
        yield Kind("scale", f"The right one is {found.text} times the left one{found.reading}.", found.rest)


def reading_of(factor: float, dimensions: tuple[int, ...], tolerance: float) -> str:
    """Returns in words, after a comma, how a factor is made of the size of an axis; nothing if it is not."""
    if any(abs(abs(factor) / one - 1) <= tolerance for one in HALVES):
        return ""
    for text, power in (("1/sqrt({})", -0.5), ("sqrt({})", 0.5), ("1/{}", -1.0), ("{}", 1.0)):
        for size in dimensions:
            if abs(abs(factor) / size**power - 1) <= tolerance:
                return f", {'-' if factor < 0 else ''}{text.format(size)}" if power != 1 else ", the size of an axis"
    return ""


@kind_test("missing_bias", 150, lambda case: case.is_comparable and not case.is_boolean)
def missing_bias(case: Case) -> Kinds:
    """Tests whether the difference is one vector along an axis, best one that both sides know."""
    if case.is_weight:
        yield _zero_bias(case)
        return
    difference = case.right - case.left
    for axis in reversed(range(case.left.ndim)):
        size = case.shape[axis]
        if size < 2:
            continue
        others = tuple(one for one in range(case.left.ndim) if one != axis)
        vector = difference.mean(axis=others)
        shape = [size if one == axis else 1 for one in range(case.left.ndim)]
        yield from _known_bias(case, vector, shape)
        # Two that are each one vector along the axis differ by one whatever they are.
        is_vector = size >= 4 and norm(vector - vector.mean()) > 0.05 * norm(vector)
        is_vector &= norm(case.left - case.left.mean(axis=others, keepdims=True)) > SPREAD * norm(case.left)
        if is_vector and case.left.size // size >= 4:
            text = f"The right one is the left one plus one vector along axis {axis}"
            message = f"{text}, as of a bias that one side lacks."
            yield case.told("missing_bias", message, case.left + vector.reshape(shape))


def _zero_bias(case: Case) -> Kind | None:
    """Tests whether a vector of parameters is 0 on one side alone."""
    zeros = [side for side in case.sides if not side.values.any()]
    if case.region.kind != "parameter" or case.left.ndim != 1 or case.left.size < FEWEST or len(zeros) != 1:
        return None
    what = f"The {zeros[0].name} one is 0 throughout, as a bias that was left out; the {zeros[0].other} one is not."
    return Kind("missing_bias", what, 0.0)


def _known_bias(case: Case, vector: Floats, shape: list[int]) -> Kinds:
    for one in case.known:
        if one.value.size != len(vector) or max(one.value.shape, default=0) != len(vector):
            continue
        bias = floats(one.value).reshape(-1)
        for sign in (-1, 1):
            if norm(vector - sign * bias) > 2 * case.limit * norm(vector):
                continue
            lacking = "right" if sign < 0 else "left"
            if (one.is_left, one.is_right) in ((True, False), (False, True)) and one.is_left != (sign < 0):
                lacking = ""  # the one that reads it subtracts it
            message = f"The {lacking} one lacks the bias {one.name}."
            if not lacking:
                message = f"The right one is the left one {'plus' if sign > 0 else 'less'} {one.name}."
            yield case.told("missing_bias", message, case.left + sign * bias.reshape(shape))


@kind_test("missing_residual", 140, lambda case: case.is_comparable and case.left.size >= FEWEST)
def missing_residual(case: Case) -> Kinds:
    """Tests whether the difference is a value of the same shape that both sides have."""
    if case.is_boolean:
        return
    # A gain that one side has with 1 added multiplies each channel: what then is missing is no residual.
    is_gain = _gain_of(case) is not None
    for one, sign, candidate in () if is_gain else _residuals(case):
        other, lacking = case.sides[::-sign]
        is_added = _adds(lacking, one.value)
        if (is_added and one.is_inner) or not _may_add(other):
            continue
        message = f"The {lacking.name} one lacks the residual {one.name}, which the {other.name} one adds."
        if is_added:
            message = f"The {other.name} one adds {one.name} once more than the {lacking.name} one."
        yield case.told("missing_residual", message, candidate)
    yield from missing_before_norm(case)


@kind_test("scale", 131, lambda case: case.is_comparable and not case.is_weight)
def gain(case: Case) -> Kinds:
    """Tests whether the right one is the left one with each channel of the last axis times a number of its own."""
    has_other_weight = any(piece.result.kind == "parameter" for piece in case.region.left_ops)
    if case.is_boolean or has_other_weight or (factors := _gain_of(case)) is None:
        return
    least, most = number_text(float(factors.min())), number_text(float(factors.max()))
    if least != most:
        channels = f"with each of its {len(factors)} channels times a number, {least} to {most}"
        yield case.told("scale", f"The right one is the left one {channels}.", case.left * factors)


def _gain_of(case: Case) -> Floats | None:
    """Returns the factors of the channels; null where there are too few rows to tell, or no factors explain it."""
    width = case.shape[-1] if case.shape else 0
    if width < FEWEST or case.left.size // width < FEWEST:
        return None
    left, right = case.left.reshape(-1, width), case.right.reshape(-1, width)
    factors = np.asarray((left * right).sum(0) / np.maximum((left * left).sum(0), 1e-300))
    return factors if case.rest(left * factors, right, left) <= case.limit else None


def _residuals(case: Case) -> Iterator[tuple[Known, int, Floats]]:
    left = case.left.reshape(-1)[case.places]
    for one, view in case.shaped(case.shape):
        if one.kind == "parameter" or view.dtype == np.bool_:
            continue
        values = at(view, case.places)
        for sign in (-1, 1):
            if case.may_be_at(left + sign * values):
                yield one, sign, case.left + sign * floats(view)


def _adds(side: CaseSide, value: Array) -> bool:
    """Returns whether a value is among those that a side adds up to its result."""
    return any(one.size == value.size and is_close(one.reshape(-1), value.reshape(-1), SAME) for one in _addends(side))


def _may_add(side: CaseSide) -> bool:
    """Returns whether an op of a side may add something; true where no op is known."""
    ops = [piece.result.op for piece in side.ops if piece.result.kind == "op"]
    return not ops or None in ops or any(word in op.lower() for op in ops if op is not None for word in ADDING)


def _addends(side: CaseSide) -> list[Array]:
    """Returns what a sum that ends a side consists of; other results are none."""
    made = {piece.result.result_id: piece for piece in (*side.inputs, *side.ops)}
    inside = {piece.result.result_id for piece in side.ops}
    found, waiting, seen = [], list(side.ops[-1:]), set[int]()
    while waiting:
        piece = waiting.pop()
        does, number = op_kind(piece.result.op), piece.result.result_id
        if number in seen:
            continue
        seen.add(number)
        sources = [made[source] for source in piece.result.sources if source in made]
        if sources and number in inside and (does in SUMS or does in PASSING):
            waiting += sources
        elif piece.value is not None and piece is not side.ops[-1]:
            found.append(piece.value)
    return found
