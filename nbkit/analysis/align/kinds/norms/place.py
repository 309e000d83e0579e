"""Tests whether a norm stands elsewhere: before or after another op, or on one side alone."""

from collections.abc import Iterator

import numpy as np

from nbkit.analysis.align.kinds.case import FEWEST, Case, Floats, floats, head_rows, is_close
from nbkit.analysis.align.region import Kind
from nbkit.ops.kinds import ROOTS, op_kind

# Columns of a product that are tried.
COLUMNS = 512
NAME = "norm_place"
EPSILON = 1e-6
NORMS = ROOTS - {"power"} | {"layer_norm", "rms_norm"}
Formula = tuple[str, str, str, Floats]  # words, the same without norms, gain and bias of the norm, value


def norm_place(case: Case) -> Kind | None:
    """Tests whether L and R are the same formula of known values, up to where the norm in it stands."""
    if not case.is_same_shape or not case.is_finite or not case.is_clear or case.is_weight:
        return None
    if case.left.size < FEWEST or len(case.shape) < 2 or case.shape[-1] < 4:
        return None
    return _moved(case) or _linear(case) or _direct(case)


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


def _moved(case: Case) -> Kind | None:
    """Tests formulas of one or two values of the pair's shape."""
    left, right = head_rows(case.left), head_rows(case.right)
    formulas = list(_formulas(case))
    ours = [one for one in formulas if case.rest(one[-1], left, right) <= case.limit]
    for words, bare, _, _ in ours:
        for other_words, other_bare, _, value in formulas:
            if words == other_words or bare != other_bare:
                continue
            if (rest := case.rest(value, right, left)) <= case.limit:
                message = f"The norm stands elsewhere: {words} on the left, {other_words} on the right."
                return Kind(NAME, message, rest)
    return None


def missing_before_norm(case: Case) -> Kind | None:
    """Tests whether one side normalizes a sum, and the other one a term of it alone, with the same gain and bias."""
    if len(case.shape) < 2 or case.shape[-1] < 4:
        return None
    left, right = head_rows(case.left), head_rows(case.right)
    formulas = [one for one in _formulas(case) if one[0].startswith("norm(") and one[0].endswith(")")]
    for first, second, full, part in ((left, right, "left", "right"), (right, left, "right", "left")):
        added = [one for one in formulas if " + " in one[1]]
        sums = {one[1:3]: None for one in added if case.rest(one[-1], first, second) <= case.limit}
        for bare, weights in sums:
            terms = bare.split(" + ")
            for _, term, other_weights, value in formulas:
                if term not in terms or weights != other_weights:
                    continue
                if (rest := case.rest(value, second, first)) <= case.limit:
                    other = next(one for one in terms if one != term)
                    message = f"The {part} one lacks the residual {other}, which the {full} one adds before its norm."
                    return Kind("missing_residual", message, rest)
    return None


def _formulas(case: Case) -> Iterator[Formula]:
    found = _terms(case)
    for name, value in found:
        yield name, name, "", value
        for _, weights, normed in _norms(case, value):
            yield f"norm({name})", name, weights, normed
    for at, (name, value) in enumerate(found):
        for other, second in found[at + 1 :]:
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


def _linear(case: Case) -> Kind | None:
    """Tests a product with a known matrix of the normalized input against that of the input itself."""
    columns = slice(None, None, -(-case.shape[-1] // COLUMNS))
    left, right = head_rows(case.left)[:, columns], head_rows(case.right)[:, columns]
    offsets = [np.zeros(left.shape[1]), *(vector[columns] for vector in _vectors(case, case.shape[-1]))]
    for weight, matrix in _matrices(case, columns):
        for one in case.known:
            if one.value.ndim < 2 or one.value.shape[-1] != len(matrix) or one.kind == "parameter":
                continue
            rows = head_rows(one.value)
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


def _vectors(case: Case, width: int) -> list[Floats]:
    return [floats(one.value) for one in case.known if one.value.shape == (width,)]


def _direct(case: Case) -> Kind | None:
    """Tests whether one side is the norm of the other."""
    left, right = head_rows(case.left), head_rows(case.right)
    for first, second, side, other in ((left, right, "right", "left"), (right, left, "left", "right")):
        # What has a norm of its own, and no fewer than the other one, lacks none.
        if 0 < _count_norms(case, side) <= _count_norms(case, other):
            continue
        for kind, _, normed in _norms(case, first):
            if (rest := case.rest(normed, second, first)) <= case.limit:
                name = "an RMS norm" if kind == "rms" else "a layer norm"
                message = f"The {side} one is the {other} one after {name}, which the {other} one lacks here."
                return Kind(NAME, message, rest)
    return None


def _count_norms(case: Case, side: str) -> int:
    ops = case.region.left_ops if side == "left" else case.region.right_ops
    return len({piece.result.call for piece in ops if op_kind(piece.result.op) in NORMS})
