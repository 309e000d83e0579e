"""Tests for NaN and Inf that one side alone has, rows that are wholly masked, and values on a border."""

from collections.abc import Iterator, Sequence
from itertools import chain, combinations, product

import numpy as np
import numpy.typing as npt

from nbkit.analysis.align.kinds.case import MASKED, Case, Floats, floats
from nbkit.analysis.align.kinds.registry import Kinds, kind_test
from nbkit.analysis.align.region import Array, Kind, Piece

Bools = npt.NDArray[np.bool_]


@kind_test("nan", 190, lambda case: case.is_same_shape)
def nan(case: Case) -> Kinds:
    """Tests whether one side has NaN, or Inf, where the other has none, or treats NaN or a border otherwise."""
    left, right = floats(case.region.left), floats(case.region.right)
    yield from _handled(case, left, right)
    yield from _at_border(case)
    yield from _infinite_mask(left, right)
    for is_it, name in () if case.is_finite else ((np.isnan, "NaN"), (np.isinf, "Inf")):
        on_left, on_right = is_it(left), is_it(right)
        for mine, other, side, beside in ((on_right, on_left, "right", "left"), (on_left, on_right, "left", "right")):
            new = mine & ~other
            if new.any() and not other.any():
                yield Kind("nan", _message(case, new, name, side, beside), 0.0)


def _handled(case: Case, left: Floats, right: Floats) -> Iterator[Kind]:
    """Tests whether the two differ only where what both read has NaN, there or anywhere along some axes."""
    differ = ~(np.isclose(left, right, rtol=max(1e-5, 4 * case.eps), atol=0, equal_nan=True)).reshape(-1)
    for one in case.known:
        is_nan = np.isnan(floats(one.value)) if one.is_left and one.is_right else np.zeros(1, dtype=bool)
        if not is_nan.any() or is_nan.all():
            continue
        axes = chain.from_iterable(combinations(range(is_nan.ndim), count) for count in range(is_nan.ndim + 1))
        for places in (is_nan.any(some) for some in axes):
            if places.size == differ.size and differ.any() and not (differ & ~places.reshape(-1)).any():
                sides = ("left", "right") if np.isnan(left).sum() > np.isnan(right).sum() else ("right", "left")
                is_passed = np.isnan(left).any() != np.isnan(right).any()
                how = f"; the {sides[0]} one passes it on, the {sides[1]} one does not" if is_passed else ""
                text = f"NaN is handled otherwise: the two differ only where {one.name}, which both read, has NaN{how}."
                yield Kind("nan_handling", text, 0.0)


def _at_border(case: Case) -> Iterator[Kind]:
    """Tests whether two gradients differ only where what they read lies on a border: an end of a clamp, or a tie."""
    pairs = [*product(*(_gradients(ops) for ops in (case.region.left_ops, case.region.right_ops)))]
    for one in case.known:
        for left, right in pairs if one.is_left or one.is_right else ():
            if not left.shape == right.shape == one.value.shape:
                continue
            found = _ties(one.value, left, right) or _ends(one.value, left, right)
            if found:
                yield Kind("border", f"The two differ only where {one.name} {found}.", 0.0)


def _ends(value: Array, left: Floats, right: Floats) -> str:
    """Returns in words at which one or two values alone gradients differ; nothing where there are none."""
    differ = left != right
    values = np.unique(value[differ])
    is_same = ~differ & np.isin(value, values) & (left != 0)
    is_stopped = not left[differ].any() or not right[differ].any()  # one side lets no gradient through there
    is_border = 0 < len(values) <= 2 < len(np.unique(value)) and is_stopped and not is_same.any()
    return f"is exactly {' or '.join(f'{value:.6g}' for value in values)}" if is_border else ""


def _ties(value: Array, left: Floats, right: Floats) -> str:
    """Returns in words whether gradients differ just at the largest or smallest of rows that have several of them."""
    differ, is_any = left != right, (left != 0) | (right != 0)
    extremes = ((np.max, "largest"), (np.min, "smallest")) if value.dtype != np.bool_ and differ.any() else ()
    for axis, (extreme, name) in product(range(value.ndim), extremes):
        is_extreme = value == extreme(value, axis, keepdims=True)
        is_tied = is_extreme.sum(axis) > 1
        rows, has_gradient = differ.any(axis), is_any.any(axis)
        is_elsewhere = (differ & ~is_extreme).any() or (has_gradient & ~is_tied).sum() == 0
        if np.array_equal(rows, is_tied & has_gradient) and not is_elsewhere:
            return (
                f"has its {name} value along axis {axis} several times: one of them gets the gradient, or all share it"
            )
    return ""


def _gradients(ops: Sequence[Piece]) -> list[Floats]:
    """Returns the gradients of the pair and of the op before it: what is farther is not yet all of one."""
    found = [floats(piece.value) for piece in ops if piece.value is not None and piece.result.phase == "backward"]
    return found[-2:]


def _infinite_mask(left: Floats, right: Floats) -> Iterator[Kind]:
    """Tests for masks that are the same but for -Inf in rows that are wholly masked, on one side alone."""
    low = left <= MASKED, right <= MASKED
    if left.ndim < 2 or not low[0].any() or not np.array_equal(low[0], low[1]):
        return
    rows = np.isneginf(left).all(-1), np.isneginf(right).all(-1)
    if rows[0].any() == rows[1].any():
        return
    side, other = ("left", "right") if rows[0].any() else ("right", "left")
    count = int((rows[0] | rows[1]).sum())
    message = (
        f"The {side} one masks with -Inf where the {other} one has finite numbers, {count} rows wholly: "
        "a row that is wholly masked gives NaN."
    )
    yield Kind("nan", message, 0.0)


def _message(case: Case, new: Bools, name: str, side: str, beside: str) -> str:
    count = int(new.sum())
    first = ", ".join(map(str, np.unravel_index(int(new.argmax()), new.shape)))
    elements = "1 element" if count == 1 else f"{count:,} elements"
    text = f"The {side} one has {name} in {elements}, where the {beside} one has none; the first is at [{first}]"
    if name == "NaN" and _is_masked(case, new):
        return f"{text}: a row that is wholly masked gives NaN."
    return f"{text}."


def _is_masked(case: Case, new: Bools) -> bool:
    """Returns whether the rows of NaN are those that a mask, or scores, mask wholly."""
    rows = np.asarray(new.any(-1))
    if not np.array_equal(rows, new.all(-1)):
        return False
    return any(_is_same(masked, rows) for masked in _masked_rows(case))


def _masked_rows(case: Case) -> Iterator[Bools]:
    left, right = case.sides
    pieces = (*right.ops, *left.ops, *right.inputs, *left.inputs)
    values: list[Array] = [*(piece.value for piece in pieces if piece.value is not None), *case.region.agreed.values()]
    for value in values:
        if value.ndim < 2:
            continue
        if value.dtype == np.bool_:
            yield np.asarray(value.all(-1))
            yield np.asarray(~value.any(-1))
        elif np.issubdtype(value.dtype, np.floating):
            yield np.asarray((floats(value) <= MASKED).all(-1))


def _is_same(masked: Bools, rows: Bools) -> bool:
    if not masked.any() or masked.ndim > rows.ndim:
        return False
    try:
        return bool(np.array_equal(np.broadcast_to(masked, rows.shape), rows))
    except ValueError:
        return False
