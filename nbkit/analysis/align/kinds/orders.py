"""Tests kinds in which the right one has the elements of the left one in another order: axes, heads, repeated heads."""

from collections.abc import Iterator
from itertools import combinations

import numpy as np
import numpy.typing as npt

from nbkit.analysis.align.kinds.case import SEED, Case, Floats, divisors, floats, norm
from nbkit.analysis.align.kinds.registry import Kinds, kind_test
from nbkit.analysis.align.region import Array, Kind

MOST_HEADS = 256
LISTED = 16
# Elements from which the keys of slices are made.
KEYED = 30_000
ROWS = 128
Order = npt.NDArray[np.intp]


@kind_test("transposed", 110, lambda case: case.is_finite and case.is_clear)
def transposed(case: Case) -> Kinds:
    """Tests whether the right one is the left one with two axes swapped, or reads a parameter so."""
    for view, message in _swapped(case):
        yield case.told("transposed", message, view)
    if case.is_same_shape and case.shape and case.shape[-1] > 1 and not case.is_weight:
        yield from _transposed_parameter(case, case.shape[-1])


def _swapped(case: Case) -> Iterator[tuple[Array, str]]:
    left, shape = case.left, case.right.shape
    if left.size != case.right.size:
        return
    wide = [axis for axis in range(left.ndim) if left.shape[axis] > 1]
    for first, second in combinations(wide, 2):
        view, how = left.swapaxes(first, second), f"axes {first} and {second} swapped"
        if view.shape == shape:
            yield view, f"The right one is the left one with its {how}."
        elif case.is_same_shape:
            yield view, f"The right one is the left one, read as if it had its {how}."
    if not case.is_same_shape or left.ndim < 2 or left.shape[-2] < 2:
        return
    *lead, rows, last = shape
    for heads in divisors(last)[1:-1]:
        size = last // heads
        message = f"The right one is the left one with the axes of its {rows} positions and {heads} heads swapped."
        yield left.reshape(*lead, rows, heads, size).swapaxes(-3, -2), message
        yield left.reshape(*lead, heads, rows, size).swapaxes(-3, -2), message


def _transposed_parameter(case: Case, width: int) -> Iterator[Kind]:
    """Tests x @ W against x @ W.T; what is added to either takes no part."""
    right, left = case.right.reshape(-1, width)[:ROWS], case.left.reshape(-1, width)[:ROWS]
    for weight in case.known:
        if weight.value.shape != (width, width):
            continue
        difference = floats(weight.value) - floats(weight.value).T
        for one in case.known:
            if one.value.ndim < 2 or one.value.shape[-1] != width or one.value.size != case.left.size or one is weight:
                continue
            change = floats(one.value.reshape(-1, width)[:ROWS]) @ difference
            for sign in (1, -1):
                explained = norm(right - left - sign * change) / max(norm(right - left), 1e-300)
                if explained <= case.limit:
                    yield Kind("transposed", f"The right one reads the parameter {weight.name} transposed.", explained)


@kind_test("permuted_heads", 120)
def permuted_heads(case: Case) -> Kinds:
    """Tests whether blocks along an axis stand in another order: the fewest, largest blocks that explain it."""
    for axis, heads, first, second in _blocks(case):
        order = nearest(second, first)
        if len(set(order.tolist())) < heads or np.array_equal(order, np.arange(heads)):
            continue
        if norm(second - first[order]) > 2 * case.limit * norm(second - first):
            continue
        message = _order_text(order, axis, case.shape[axis] // heads)
        yield case.told("permuted_heads", message, reordered(case.left, axis, order))


@kind_test("repeated_heads", 90)
def repeated_heads(case: Case) -> Kinds:
    """Tests whether heads that are there several times stand as 0, 0, 1, 1 on one side and 0, 1, 0, 1 on the other."""
    for axis, heads, first, second in _blocks(case):
        source = first_equal(first)
        groups = len(set(source.tolist()))
        if groups in (1, heads) or heads % groups:
            continue
        order = nearest(second, first)
        how = _repeats(source, groups), _repeats(source[order], groups)
        if None in how or how[0] == how[1]:
            continue
        message = (
            f"The right one repeats its {groups} key and value heads in another order: {how[0]} on the left, "
            f"{how[1]} on the right (axis {axis})."
        )
        yield case.told("repeated_heads", message, reordered(case.left, axis, order))


def _blocks(case: Case) -> Iterator[tuple[int, int, Floats, Floats]]:
    """Yields axes, numbers of heads along them, and the keys of the heads of both sides."""
    for axis in range(case.left.ndim):
        left, right = keys(case, axis)
        for heads in _head_counts(case, axis):
            yield axis, heads, block_keys(left, heads), block_keys(right, heads)


def keys(case: Case, axis: int) -> tuple[Floats, Floats]:
    """Returns a few random projections of each slice of both along an axis, by which it is found again."""
    return case.once(("keys", axis), lambda: (_keys(case.left, axis), _keys(case.right, axis)))


def _keys(values: Floats, axis: int) -> Floats:
    moved = np.moveaxis(values, axis, 0)
    while moved.size > KEYED and max(moved.shape[1:], default=1) > 1:
        longest = 1 + int(np.argmax(moved.shape[1:]))
        step = int(np.ceil(min(moved.size / KEYED, moved.shape[longest])))
        moved = moved[tuple(slice(None, None, step if one == longest else 1) for one in range(moved.ndim))]
    flat = moved.reshape(len(moved), -1)
    weights = np.random.default_rng([SEED, 1]).standard_normal((flat.shape[1], 6))
    return np.asarray(flat @ weights)


def block_keys(values: Floats, blocks: int) -> Floats:
    """Returns keys of blocks from those of their slices."""
    size = len(values) // blocks
    weights = np.random.default_rng([SEED, 2]).standard_normal(size)
    return np.asarray(np.tensordot(values.reshape(blocks, size, -1), weights, axes=(1, 0)))


def nearest(wanted: Floats, among: Floats) -> Order:
    """Returns which key of `among` is nearest to each wanted one, the first of equals."""
    return np.asarray(np.argmin(((wanted[:, None] - among[None]) ** 2).sum(-1), axis=1))


def reordered(values: Floats, axis: int, order: Order) -> Floats:
    """Returns values with the blocks along an axis in an order."""
    shape = values.shape
    split = values.reshape(*shape[:axis], len(order), shape[axis] // len(order), *shape[axis + 1 :])
    return split.take(order, axis=axis).reshape(shape)


def _head_counts(case: Case, axis: int) -> list[int]:
    """Returns the numbers of heads that an axis may have; single elements are heads of an axis that is not the last."""
    size = case.shape[axis]
    is_heads = case.left.ndim >= 3 and axis < case.left.ndim - 1
    fewest = 1 if is_heads else 2
    return [count for count in divisors(size)[1:] if count <= MOST_HEADS and size // count >= fewest]


def first_equal(found: Floats) -> Order:
    """Returns for each key the first one that is equal; copies are so to the bit."""
    scale = np.abs(found).max(initial=0.0)
    is_equal = np.abs(found[:, None] - found[None]).max(-1) <= 1e-9 * max(scale, 1e-300)
    return np.asarray(np.argmax(is_equal, axis=1))


def _repeats(source: Order, groups: int) -> str | None:
    """Returns in words how copies are ordered, given which one each is a copy of; null if in neither way."""
    _, first = np.unique(source, return_index=True)
    labels = np.searchsorted(np.sort(source[first]), source)
    times = len(source) // groups
    if np.array_equal(labels, np.repeat(np.arange(groups), times)):
        return "each head several times in a row"
    return "all heads, then all again" if np.array_equal(labels, np.tile(np.arange(groups), times)) else None


def _order_text(order: Order, axis: int, size: int) -> str:
    listed = ", ".join(map(str, order[:LISTED])) + (", ..." if len(order) > LISTED else "")
    width = "" if size == 1 else f", each {size} wide"
    text = f"The right one is the left one with its {len(order)} heads in the order {listed}"
    for rows in divisors(len(order))[1:-1]:
        if np.array_equal(order, np.arange(len(order)).reshape(rows, -1).T.reshape(-1)):
            columns = len(order) // rows
            return f"{text} (axis {axis}{width}): as if {rows} x {columns} of them were {columns} x {rows}."
    return f"{text} (axis {axis}{width})."
