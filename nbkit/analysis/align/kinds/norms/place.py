"""Tests whether a norm stands elsewhere: before or after another op, or on one side alone."""

from collections.abc import Iterator

import numpy as np

from nbkit.analysis.align.kinds.case import FEWEST, Case, Floats, floats, norm
from nbkit.analysis.align.region import Array, Kind

ROWS = 64
# Columns of a product that are tried.
COLUMNS = 512
NAME = "norm_place"
EPSILON = 1e-6
Formula = tuple[str, str, Floats]  # words, the same without norms, value


def norm_place(case: Case) -> Kind | None:
    """Tests whether L and R are the same formula of known values, up to where the norm in it stands."""
    if not case.is_same_shape or not case.is_finite or not case.is_clear or case.is_weight:
        return None
    if case.left.size < FEWEST or len(case.shape) < 2 or case.shape[-1] < 4:
        return None
    return _moved(case) or _linear(case) or _direct(case)


def _rows(value: Array) -> Floats:
    return floats(_head(value))


def _head(value: Array) -> Array:
    """Returns the first rows, without a copy of the others."""
    if value.flags.c_contiguous or value.ndim == 2:
        return value.reshape(-1, value.shape[-1])[:ROWS]
    return value[np.unravel_index(np.arange(min(ROWS, value.size // value.shape[-1])), value.shape[:-1])]


def _norms(case: Case, rows: Floats) -> Iterator[tuple[str, Floats]]:
    """Yields the norms of rows by name, with each known weight, one more than it, and each pair of weight and bias."""
    width = rows.shape[-1]
    vectors = [(one.name, floats(one.value)) for one in case.known if one.value.shape == (width,)]
    centered = rows - rows.mean(-1, keepdims=True)
    for kind, unit in (("rms", rows), ("layer", centered)):
        unit = unit / np.sqrt((unit**2).mean(-1, keepdims=True) + EPSILON)
        yield kind, unit
        for _, weight in vectors:
            yield kind, unit * weight
            yield kind, unit * (1 + weight)
            for _, bias in vectors:
                if kind == "layer" and bias is not weight:
                    yield kind, unit * weight + bias


def _moved(case: Case) -> Kind | None:
    """Tests formulas of one or two values of the pair's shape."""
    left, right = _rows(case.left), _rows(case.right)
    allowed = case.limit * norm(right - left)
    formulas = list(_formulas(case))
    ours = [one for one in formulas if norm(left - one[2]) <= allowed]
    for words, bare, _ in ours:
        for other_words, other_bare, value in formulas:
            if words != other_words and bare == other_bare and norm(right - value) <= allowed:
                message = f"The norm stands elsewhere: {words} on the left, {other_words} on the right."
                return Kind(NAME, message, norm(right - value) / norm(right - left))
    return None


def missing_before_norm(case: Case) -> Kind | None:
    """Tests whether one side normalizes a sum, and the other one term of it alone."""
    if len(case.shape) < 2 or case.shape[-1] < 4:
        return None
    left, right = _rows(case.left), _rows(case.right)
    allowed = case.limit * norm(right - left)
    formulas = [one for one in _formulas(case) if one[0].startswith("norm(") and one[0].endswith(")")]
    for first, second, full, part in ((left, right, "left", "right"), (right, left, "right", "left")):
        sums = [bare for _, bare, value in formulas if " + " in bare and norm(first - value) <= allowed]
        for bare in dict.fromkeys(sums):
            for _, term, value in formulas:
                if term in bare.split(" + ") and (rest := norm(second - value)) <= allowed:
                    other = next(one for one in bare.split(" + ") if one != term)
                    message = f"The {part} one lacks the residual {other}, which the {full} one adds before its norm."
                    return Kind("missing_residual", message, rest / norm(right - left))
    return None


def _formulas(case: Case) -> Iterator[Formula]:
    found = [(one.name, _rows(view)) for one, view in case.shaped(case.shape) if view.dtype != np.bool_][:4]
    for name, value in found:
        yield name, name, value
        for _, normed in _norms(case, value):
            yield f"norm({name})", name, normed
    for at, (name, value) in enumerate(found):
        for other, second in found[at + 1 :]:
            bare = f"{name} + {other}"
            yield bare, bare, value + second
            for _, normed in _norms(case, value + second):
                yield f"norm({bare})", bare, normed
            for _, normed in _norms(case, value):
                yield f"norm({name}) + {other}", bare, normed + second
            for _, normed in _norms(case, second):
                yield f"{name} + norm({other})", bare, value + normed


def _linear(case: Case) -> Kind | None:
    """Tests a product with a known matrix of the normalized input against that of the input itself."""
    columns = slice(None, None, -(-case.shape[-1] // COLUMNS))
    left, right = _rows(case.left)[:, columns], _rows(case.right)[:, columns]
    offsets = [np.zeros(left.shape[1]), *(vector[columns] for vector in _vectors(case, case.shape[-1]))]
    for weight, matrix in _matrices(case, columns):
        for one in case.known:
            if one.value.ndim < 2 or one.value.shape[-1] != len(matrix) or one.kind == "parameter":
                continue
            rows = _rows(one.value)
            if len(rows) != len(left):
                continue
            for side, other, mine, beside in (("left", "right", left, right), ("right", "left", right, left)):
                explained = _normed_product(case, rows, matrix, offsets, (mine, beside))
                if explained is not None:
                    text = f"The {side} one applies {weight} to the normalized {one.name}"
                    return Kind(NAME, f"{text}, the {other} one to {one.name} as it is.", explained)
    return None


def _normed_product(
    case: Case, rows: Floats, matrix: Floats, offsets: list[Floats], sides: tuple[Floats, Floats]
) -> float | None:
    """Returns what is left where the first side is norm(x) W + b, and the second x W + b; null if they are not."""
    distance, bare = norm(sides[1] - sides[0]), rows @ matrix
    for bias in offsets:
        rest = norm(sides[1] - bare - bias) / distance
        if rest > case.limit:
            continue
        for _, normed in _norms(case, rows):
            explained = max(rest, norm(sides[0] - normed @ matrix - bias) / distance)
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


def _vectors(case: Case, width: int) -> list[Floats]:
    return [floats(one.value) for one in case.known if one.value.shape == (width,)]


def _direct(case: Case) -> Kind | None:
    """Tests whether one side is the norm of the other."""
    left, right = _rows(case.left), _rows(case.right)
    allowed = case.limit * norm(right - left)
    for first, second, side, other in ((left, right, "right", "left"), (right, left, "left", "right")):
        for kind, normed in _norms(case, first):
            if (rest := norm(second - normed)) <= allowed:
                name = "an RMS norm" if kind == "rms" else "a layer norm"
                message = f"The {side} one is the {other} one after {name}, which the {other} one lacks here."
                return Kind(NAME, message, rest / norm(right - left))
    return None
