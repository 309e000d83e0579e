"""Tests whether a norm stands elsewhere: before or after another op, or on one side alone."""

from collections.abc import Iterator
from itertools import combinations

import numpy as np

from nbkit.analysis.align.kinds.case import FEWEST, Case, CaseSide, Floats, floats, head_rows, is_close
from nbkit.analysis.align.kinds.registry import Kinds, kind_test
from nbkit.analysis.align.region import Kind
from nbkit.ops.kinds import ROOTS, op_kind

# Columns of a product that are tried.
COLUMNS = 512
NAME = "norm_place"
EPSILON = 1e-6
NORMS = ROOTS - {"power"} | {"layer_norm", "rms_norm"}
Formula = tuple[str, str, str, Floats]  # words, the same without norms, gain and bias of the norm, value


@kind_test(NAME, 165, lambda case: case.has_rows and case.left.size >= FEWEST)
def norm_place(case: Case) -> Kinds:
    """Tests whether L and R are the same formula of known values, up to where the norm in it stands."""
    yield from _moved(case)
    yield from _linear(case)
    yield from _direct(case)


def _norms(case: Case, rows: Floats) -> Iterator[tuple[str, str, Floats]]:
    """Yields the norms of rows: kind, gain and bias, value; with each known weight, 1 more than it, and each bias."""
    width = rows.shape[-1]
    vectors = [(one.name, floats(one.value)) for one in case.known if one.value.shape == (width,)]
    centered = rows - rows.mean(-1, keepdims=True)
    for kind, unit in (("rms", rows), ("layer", centered)):
        unit = unit / np.sqrt((unit**2).mean(-1, keepdims=True) + EPSILON)
        yield kind, kind, unit
        for name, weight in vectors:
            yield kind, f"{kind} {name}", unit * weight
            yield kind, f"{kind} 1 + {name}", unit * (1 + weight)
            for other, bias in vectors:
                if kind == "layer" and bias is not weight:
                    yield kind, f"{kind} {name} {other}", unit * weight + bias


def _moved(case: Case) -> Kinds:
    """Tests formulas of one or two values of the pair's shape."""
    left, right = head_rows(case.left), head_rows(case.right)
    formulas = list(_formulas(case))
    ours = [one for one in formulas if case.rest(one[-1], left, right) <= case.limit]
    for words, bare, _, _ in ours:
        for other_words, other_bare, _, value in formulas:
            if words != other_words and bare == other_bare:
                message = f"The norm stands elsewhere: {words} on the left, {other_words} on the right."
                yield case.fits(NAME, message, value, right, left)


def missing_before_norm(case: Case) -> Kinds:
    """Tests whether one side normalizes a sum, and the other one a term of it alone, with the same gain and bias."""
    if len(case.shape) < 2 or case.shape[-1] < 4:
        return
    formulas = [one for one in _formulas(case) if one[0].startswith("norm(") and one[0].endswith(")")]
    for full in case.sides:
        first, second = head_rows(full.values), head_rows(full.beside)
        added = [one for one in formulas if " + " in one[1]]
        sums = {one[1:3]: None for one in added if case.rest(one[-1], first, second) <= case.limit}
        for bare, weights in sums:
            terms = bare.split(" + ")
            for _, term, other_weights, value in formulas:
                if term not in terms or weights != other_weights:
                    continue
                if other := next((one for one in terms if one != term), ""):
                    what = f"the residual {other}, which the {full.name} one adds before its norm"
                    message = f"The {full.other} one lacks {what}."
                    yield case.fits("missing_residual", message, value, second, first)


def _formulas(case: Case) -> Iterator[Formula]:
    found = _terms(case)
    for name, value in found:
        yield name, name, "", value
        for _, weights, normed in _norms(case, value):
            yield f"norm({name})", name, weights, normed
    for (name, value), (other, second) in combinations(found, 2):
        bare = f"{name} + {other}"
        yield bare, bare, "", value + second
        for _, weights, normed in _norms(case, value + second):
            yield f"norm({bare})", bare, weights, normed
        for _, weights, normed in _norms(case, value):
            yield f"norm({name}) + {other}", bare, weights, normed + second
        for _, weights, normed in _norms(case, second):
            yield f"{name} + norm({other})", bare, weights, value + normed


def _terms(case: Case) -> list[tuple[str, Floats]]:
    """Returns rows of known values of the pair's shape by name; of those that are views of one another the first."""
    found: list[tuple[str, Floats]] = []
    for one, view in case.shaped(case.shape):
        rows = head_rows(view)
        if view.dtype != np.bool_ and not any(is_close(rows, other, 1e-6) for _, other in found):
            found.append((one.name, rows))
    return found[:4]


def _linear(case: Case) -> Iterator[Kind]:
    """Tests a product with a known matrix of the normalized input against that of the input itself."""
    columns = slice(None, None, -(-case.shape[-1] // COLUMNS))
    sides = [(side, head_rows(side.values)[:, columns], head_rows(side.beside)[:, columns]) for side in case.sides]
    left = sides[0][1]
    offsets = [np.zeros(left.shape[1]), *(vector[columns] for _, vector in case.vectors())]
    for weight, matrix in _matrices(case, columns):
        for one in case.known:
            if one.value.ndim < 2 or one.value.shape[-1] != len(matrix) or one.kind == "parameter":
                continue
            rows = head_rows(one.value)
            if len(rows) != len(left):
                continue
            for side, *values in sides:
                explained = _normed_product(case, rows, matrix, offsets, (values[0], values[1]))
                if explained is not None:
                    text = f"The {side.name} one applies {weight} to the normalized {one.name}"
                    yield Kind(NAME, f"{text}, the {side.other} one to {one.name} as it is.", explained)


def _normed_product(
    case: Case, rows: Floats, matrix: Floats, offsets: list[Floats], sides: tuple[Floats, Floats]
) -> float | None:
    """Returns what is left where the first side is norm(x) W + b, and the second x W + b; null if they are not."""
    bare = rows @ matrix
    for bias in offsets:
        rest = case.rest(bare + bias, sides[1], sides[0])
        if rest > case.limit:
            continue
        for _, _, normed in _norms(case, rows):
            explained = max(rest, case.rest(normed @ matrix + bias, *sides))
            if explained <= case.limit:
                return explained
    return None


def _matrices(case: Case, columns: slice) -> Iterator[tuple[str, Floats]]:
    for one in case.known:
        if one.value.ndim == 2 and one.kind in ("parameter", "constant", "buffer"):
            if one.value.shape[0] == case.shape[-1]:
                yield one.name, floats(one.value.T[:, columns])
            if one.value.shape[1] == case.shape[-1]:
                yield one.name, floats(one.value[:, columns])


def _direct(case: Case) -> Kinds:
    """Tests whether one side is the norm of the other."""
    for side, other in (case.sides[::-1], case.sides):
        # What has a norm of its own, and no fewer than the other one, lacks none.
        if 0 < _count_norms(side) <= _count_norms(other):
            continue
        values, beside = head_rows(side.values), head_rows(side.beside)
        for kind, _, normed in _norms(case, beside):
            name = "an RMS norm" if kind == "rms" else "a layer norm"
            message = (
                f"The {side.name} one is the {other.name} one after {name}, which the {other.name} one lacks here."
            )
            yield case.fits(NAME, message, normed, values, beside)


def _count_norms(side: CaseSide) -> int:
    return len({piece.result.call for piece in side.ops if op_kind(piece.result.op) in NORMS})
