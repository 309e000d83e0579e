"""Which results of two ONNX models are the same, by brute force over values: equal up to reshape and order of axes."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import permutations
from math import prod
from typing import Any

import numpy as np

from tests.align_cases.onnx_models import PARTS, PUBLISHED, Arrays, Sizes, exported, inputs_of, optimised

TOLERANCE = 1e-4  # of the root mean square; what differs by intent differs by more
HUGE = 1e15  # its square is beyond float32, as that of what hides in a mask
LENGTHS = (64, 1_024)


def truth(left_values: Mapping[str, np.ndarray], right_values: Mapping[str, np.ndarray]) -> dict[str, set[str]]:
    """Returns for each right result the left ones that have its values; none if its values are nowhere on the left.

    All of them are right, as one is a view of another, or was added zeros to.
    """
    left = {name: Known.of(value) for name, value in left_values.items()}
    right = {name: Known.of(value) for name, value in right_values.items()}
    return {name: {other for other, known in left.items() if same(known, wanted)} for name, wanted in right.items()}


@dataclass(frozen=True)
class Known:
    """Holds an array and sums that do not depend on the order of its elements, which tell most pairs apart."""

    array: np.ndarray
    kind: str
    sums: np.ndarray
    scale: float

    @classmethod
    def of(cls, array: np.ndarray) -> "Known":
        flat = array.ravel() if array.dtype == np.float32 else array.astype(np.float64).ravel()
        if not flat.size:
            return cls(array, array.dtype.kind, np.zeros(0), 0.0)
        flat = flat if np.isfinite(flat).all() else np.where(np.isfinite(flat), flat, 0)
        flat = flat if np.abs(flat).max() < HUGE else flat.astype(np.float64)
        scale = float(np.sqrt(np.mean(np.square(flat), dtype=np.float64)))
        unit = np.abs(flat) / (scale or 1.0)
        signed = float(np.mean(flat, dtype=np.float64)) / (scale or 1.0)
        sums = [signed, np.mean(unit, dtype=np.float64), np.mean(np.sqrt(unit), dtype=np.float64)]
        extremes = [flat.min() / (scale or 1.0), flat.max() / (scale or 1.0)]
        return cls(array, array.dtype.kind.replace("u", "i"), np.array([*sums, *extremes]), scale)


def same(left: Known, right: Known) -> bool:
    """Whether an order of axes, before or after a reshape, makes the right one of the left one."""
    if left.kind != right.kind or left.array.size != right.array.size:
        return False
    if left.array.size == 0 or abs(left.scale - right.scale) > TOLERANCE * left.scale:
        return left.array.size == 0
    if not np.allclose(left.sums, right.sums, rtol=TOLERANCE, atol=TOLERANCE):
        return False
    limit = TOLERANCE * left.scale
    return any(equal(found, right.array.ravel(), limit) for found in orders(left.array, right.array, limit))


def equal(left: np.ndarray, right: np.ndarray, limit: float) -> bool:
    """Whether all elements agree within the limit, or their own rounding where they are larger; NaN is NaN."""
    if left.dtype == bool:
        return bool((left == right).all())
    with np.errstate(invalid="ignore"):
        close = np.abs(left - right) <= limit + TOLERANCE * np.abs(right)
    return bool((close | (left == right) | ((left != left) & (right != right))).all())


def orders(left: np.ndarray, right: np.ndarray, limit: float) -> Iterator[np.ndarray]:
    """Yields the left one's elements in each order of its axes that agrees with the right one in a few places.

    Axes are those of the left array, and those that it has when one or two of them are cut by the right one's sizes.
    """
    places = np.random.default_rng(0).choice(right.size, min(right.size, 64), replace=False)
    probe, flat, seen = right.ravel()[places], left.ravel(), set()
    for shape in refinements(left.shape, right.shape):
        strides = np.array([prod(shape[axis + 1 :]) for axis in range(len(shape))], dtype=np.int64)
        for order in permutations(range(len(shape))):
            sizes = tuple(shape[axis] for axis in order)
            key = (sizes, tuple(strides[list(order)]))
            if key in seen:
                continue
            seen.add(key)
            index = np.stack(np.unravel_index(places, sizes)) if sizes else np.zeros((0, len(places)), np.int64)
            if equal(flat[strides[list(order)] @ index], probe, limit):
                yield left.reshape(shape).transpose(order).ravel()


def refinements(left: tuple[int, ...], right: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Yields the left shape without axes of size 1, and with up to two axes cut in two by a size of the right one."""
    start = tuple(size for size in left if size != 1)
    known, waiting = {start}, [start]
    for _ in range(2):
        for shape in list(waiting):
            yield shape
            waiting.remove(shape)
            for axis, size in enumerate(shape):
                for part in set(right) | set(left):
                    if 1 < part < size and size % part == 0 and len(shape) < 5:
                        for cut in ((part, size // part), (size // part, part)):
                            new = shape[:axis] + cut + shape[axis + 1 :]
                            if new not in known:
                                known.add(new)
                                waiting.append(new)
    yield from waiting


@dataclass(frozen=True)
class OnnxPair:
    """Holds two models of one part of a LLaMA and the inputs of both."""

    name: str
    left: Any
    right: Any
    inputs: Arrays


MAKERS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "plain-optimised": (
        lambda part, length, sizes: exported(part, length, False, sizes),
        lambda part, length, sizes: exported(part, length, True, sizes),
    ),
    "optimised-onnxruntime": (lambda part, length, sizes: exported(part, length, True, sizes), optimised),
    "plain-onnxruntime": (lambda part, length, sizes: exported(part, length, False, sizes), optimised),
}


def pair(part: str, length: int, makers: str, sizes: Sizes = PUBLISHED) -> OnnxPair:
    """Returns two models of a part: of MAKERS, the left one's and the right one's."""
    left, right = (make(part, length, sizes) for make in MAKERS[makers])
    return OnnxPair(f"{part}-{length}-{makers}", left, right, inputs_of(part, length, sizes))


def pairs(lengths: tuple[int, ...] = LENGTHS) -> Iterator[OnnxPair]:
    """Yields every part at every length, exporter against its optimised form and against onnxruntime's."""
    for length in lengths:
        for part in PARTS:
            for makers in MAKERS:
                yield pair(part, length, makers)
