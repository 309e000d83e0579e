"""Relation says how one tensor holds the elements of another one, and turns left values into right ones."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice, permutations, product
from math import isfinite
from typing import Any

import numpy as np
import numpy.typing as npt

from nbkit.numerics.blocks import BLOCK, blocks, same_bits

Array = npt.NDArray[np.generic]
Shape = tuple[int, ...]
# So many orders of axes are tried for one way to split them, at most.
MOST_ORDERS = 720


@dataclass(frozen=True)
class Relation:
    """Holds how a right tensor follows from a left one: the left split into `split`, its axes in the order `axes`.

    `name` is same, reshape, permute or cast, as in the frame alignment.
    """

    name: str
    left_shape: Shape
    right_shape: Shape
    split: Shape = ()
    axes: tuple[int, ...] = ()

    def to_right(self, value: Array) -> Array:
        """Returns a left value in the order and shape of the right one."""
        if self.axes:
            value = value.reshape(self.split).transpose(self.axes)
        return value.reshape(self.right_shape)

    def to_left(self, value: Array) -> Array:
        """Returns a right value in the order and shape of the left one."""
        if self.axes:
            value = value.reshape([self.split[axis] for axis in self.axes]).transpose(np.argsort(self.axes))
        return value.reshape(self.left_shape)

    def views(self, left: Array, right: Array) -> tuple[Array, Array]:
        """Returns a pair of values as views of one shape, in which each element stands beside its own."""
        if not self.axes:
            return left.reshape(self.left_shape), right.reshape(self.left_shape)
        turned = right.reshape([self.split[axis] for axis in self.axes]).transpose(np.argsort(self.axes))
        return left.reshape(self.split), turned

    @property
    def order(self) -> str | None:
        """Returns the split and the order of axes in words; null where the order of elements is the same."""
        return f"axes {list(self.axes)} of {list(self.split)}" if self.axes else None


def in_order(left: Shape, right: Shape, *, is_cast: bool = False) -> Relation:
    """Returns the relation of tensors with the same elements in the same order."""
    return Relation("reshape" if left != right else "cast" if is_cast else "same", left, right)


def permutation_of(left: Array, right: Array, tolerance: float) -> Relation | None:
    """Returns the order of axes by which the right tensor is the left one; null if there is none.

    Axes are taken whole first, then split where the other side has such a length. Differences of up to `tolerance`,
    relative to the norm, are allowed.
    """
    if left.size != right.size or left.size < 2 or not _same_elements(left, right, tolerance):
        return None
    for left_split, right_split in _splits(left.shape, right.shape):
        split_left, split_right = left.reshape(left_split), right.reshape(right_split)
        for axes in _orders(left_split, right_split):
            if _is_close(split_left.transpose(axes), split_right, tolerance):
                return Relation("permute", left.shape, right.shape, left_split, axes)
    return None


def _same_elements(left: Array, right: Array, tolerance: float) -> bool:
    return relative_error(np.sort(left, axis=None), np.sort(right, axis=None)) <= tolerance


@lru_cache(maxsize=512)  # many results of a model have the same shapes, and most tries find nothing
def _splits(left: Shape, right: Shape) -> tuple[tuple[Shape, Shape], ...]:
    """Returns pairs of splits of both shapes with the same lengths."""
    plain = [tuple(size for size in shape if size != 1) for shape in (left, right)]
    options = [[plain[side], *_split_once(plain[side], plain[1 - side])] for side in (0, 1)]
    pairs = sorted(product(options[0], options[1]), key=lambda pair: len(pair[0]) + len(pair[1]))
    return tuple(dict.fromkeys(pair for pair in pairs if sorted(pair[0]) == sorted(pair[1])))


def _split_once(shape: Shape, other: Shape) -> Iterator[Shape]:
    """Yields the shape with one or two axes split in two, one factor of which is a length of the other shape."""
    singles = list(_one_axis_split(shape, other))
    yield from singles
    for single in singles:
        yield from _one_axis_split(single, other)


def _one_axis_split(shape: Shape, other: Shape) -> Iterator[Shape]:
    for axis, size in enumerate(shape):
        for length in dict.fromkeys(other):
            if 1 < length < size and size % length == 0:
                for pair in dict.fromkeys([(length, size // length), (size // length, length)]):
                    yield shape[:axis] + pair + shape[axis + 1 :]


@lru_cache(maxsize=512)
def _orders(left: Shape, right: Shape) -> tuple[tuple[int, ...], ...]:
    """Returns orders of axes that make the left shape the right one, but not the one that changes nothing."""
    others = islice(permutations(range(len(left))), 1, None)
    return tuple(islice((axes for axes in others if tuple(map(left.__getitem__, axes)) == right), MOST_ORDERS))


def _is_close(left: Array, right: Array, tolerance: float) -> bool:
    step = max(left.size // 4096, 1)
    if step > 1:
        steps = tuple(slice(None, None, max(size // 8, 1)) for size in left.shape)
        if relative_error(left[steps], right[steps]) > 4 * tolerance:
            return False
    return relative_error(left, right) <= tolerance


def relative_error(left: Array, right: Array) -> float:
    """Returns |right - left| over |left|, 2-norms; inf where NaN or Inf stand elsewhere, or the left alone is zero."""
    if left.shape != right.shape:
        return float("inf")
    if left.size > BLOCK and same_bits(left, right):
        return 0.0
    wide = np.complex128 if "c" in (left.dtype.kind, right.dtype.kind) else np.float64
    size = norm = 0.0
    with np.errstate(all="ignore"):
        for expected, actual in blocks((left, right), wide):
            squares = _squares(expected, actual)
            if not isfinite(squares[0] + squares[1]):
                cleared = _cleared(expected, actual)
                if cleared is None:
                    return float("inf")
                squares = _squares(*cleared)
            size += squares[0]
            norm += squares[1]
        if not isfinite(size + norm):
            return _error_of_huge(left.astype(wide).ravel(), right.astype(wide).ravel())
    return 0.0 if size == 0 else float(size**0.5 / norm**0.5) if norm else float("inf")


def _squares(expected: Any, actual: Any) -> tuple[float, float]:
    """Returns the squares of the norms of the difference, and of what is expected."""
    difference = actual - expected
    return float(np.vdot(difference, difference).real), float(np.vdot(expected, expected).real)


def _cleared(expected: Any, actual: Any) -> tuple[Any, Any] | None:
    """Returns both with zeros where both are NaN, or the same Inf; null where one of them alone is."""
    is_same = (expected == actual) | (np.isnan(expected) & np.isnan(actual))
    is_finite = np.isfinite(expected), np.isfinite(actual)
    if not (is_same | (is_finite[0] & is_finite[1])).all():
        return None
    return np.where(is_finite[0], expected, 0), np.where(is_finite[1], actual, 0)


def _error_of_huge(expected: Any, actual: Any) -> float:
    """Returns the error where numbers are too large to be squared."""
    cleared = _cleared(expected, actual)
    assert cleared is not None
    expected, actual = cleared
    extent = float(np.abs(expected).max(initial=0.0))
    if not extent:
        return 0.0 if not np.abs(actual).max(initial=0.0) else float("inf")
    return float(np.linalg.norm(actual / extent - expected / extent) / np.linalg.norm(expected / extent))
