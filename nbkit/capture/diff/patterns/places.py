"""Patterns in which right elements stand at wrong places: shifted, transposed, permuted, repeated, reordered."""

from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np

from nbkit.capture.diff.patterns.candidate import Found, Wrong
from nbkit.numerics.difference_patterns import MOST
from nbkit.numerics.metrics import Metrics, rms
from nbkit.numerics.precision import PRECISIONS, Array

# Elements that a shift moves at least, and slices that are looked for among so many at most.
FEWEST, MOST_SLICES = 6, 1024
FEWEST_SLICES = 4
AXES = 5
# Sums of a slice's elements with random weights, which tell it from others.
WEIGHTINGS = 4
SEED = 13
# Elements that are sorted, and how far they must be from their places, as a share of their scatter.
MOST_SORTED, DISTANCE = 1 << 20, 0.5
# The conditioning, as a share of that scatter, up to which sorted numbers tell.
SHARP = 1e-4
# How near the sums of squares of both must be.
SAME = 1e-5


def place_patterns(wrong: Wrong) -> Iterator[Found | None]:
    """Patterns of elements that have moved."""
    yield from _shifted(wrong)
    yield from _transposed(wrong)
    for axis, size in enumerate(wrong.shape):
        if 1 < size <= MOST_SLICES:
            yield from _slices(wrong, axis)


def _shifted(wrong: Wrong) -> Iterator[Found | None]:
    """By one place along an axis, or in memory; what comes in at the end is looked at afterwards."""
    axes: list[int | None] = [axis for axis, size in enumerate(wrong.shape) if size > 2]
    if sum(size > 1 for size in wrong.shape) > 1:
        axes.insert(0, None)  # it moves all but one element, an axis leaves those at its end
    for axis in axes:
        for shift in (1, -1):
            yield _shifted_by(wrong, axis, shift)


def _shifted_by(wrong: Wrong, axis: int | None, shift: int) -> Found | None:
    shape = (len(wrong.actual),) if axis is None else wrong.shape
    along = 0 if axis is None else axis
    size = shape[along]
    stride = int(np.prod(shape[along + 1 :], dtype=np.int64))
    places = wrong.places
    source = places // stride % size - shift
    inside = (source >= 0) & (source < size)
    if inside.sum() < FEWEST or not wrong.may_be(wrong.expected[places[inside] - shift * stride], places[inside]):
        return None

    def moved(values: Array) -> Array:
        return np.roll(values.reshape(shape), shift, along).reshape(-1)

    position = np.arange(size)
    is_inside = (position - shift >= 0) & (position - shift < size)
    chosen = np.broadcast_to(is_inside.reshape(-1, *[1] * (len(shape) - along - 1)), shape).reshape(-1)
    candidate, conditioning = moved(wrong.expected), _moved(wrong, moved)
    fit = wrong.fit(candidate, conditioning, chosen)
    if fit is None:
        return None
    whole = wrong.fit(candidate, conditioning, ~chosen)
    return Found("shifted", {"axis": axis, "shift": shift, "is_wrapped": whole is not None, **fit.evidence})


def _transposed(wrong: Wrong) -> Iterator[Found | None]:
    """Two axes in each other's place: of one size, or in the order in which memory is read or written."""
    shape = wrong.shape
    if not 2 <= len(shape) <= AXES or len(wrong.actual) > MOST_SORTED:
        return
    numbers = np.arange(len(wrong.actual))
    for axes in combinations([axis for axis, size in enumerate(shape) if size > 1], 2):
        other = list(shape)
        other[axes[0]], other[axes[1]] = other[axes[1]], other[axes[0]]
        for begin in (shape, tuple(other)):

            def moved(values: Array, begin: tuple[int, ...] = begin, axes: tuple[int, int] = axes) -> Array:
                return values.reshape(begin).swapaxes(*axes).reshape(-1)

            if wrong.may_be(wrong.expected[moved(numbers)[wrong.places]]):
                evidence = {"axes": list(axes), "is_reshaped": shape[axes[0]] != shape[axes[1]]}
                yield wrong.found("transposed", evidence, moved(wrong.expected), _moved(wrong, moved))


def _slices(wrong: Wrong, axis: int) -> Iterator[Found | None]:
    """Whole slices along an axis in another order, or one of them everywhere."""
    shape, size = wrong.shape, wrong.shape[axis]
    length = len(wrong.actual) // size
    # Single numbers of few bits, and a few numbers, are near others by chance.
    if length < 2 and wrong.digits < PRECISIONS["float32"].digits:
        return
    if size < FEWEST_SLICES and length < FEWEST_SLICES:
        return

    def by_slice(values: Array) -> Array:
        return np.moveaxis(values.reshape(shape), axis, 0).reshape(size, -1)

    order = _nearest(by_slice(wrong.actual), by_slice(wrong.expected), np.asarray(by_slice(wrong.wrong).any(1)))
    if order is None:
        return
    is_repeated = bool((order == order[0]).all())
    if not is_repeated and (len(np.unique(order)) < size or (order == np.arange(size)).all()):
        return

    def moved(values: Array) -> Array:
        return values.reshape(shape).take(order, axis).reshape(-1)

    shifts = np.unique((np.arange(size) - order) % size)
    name, evidence = "repeated" if is_repeated else "permuted", {"axis": axis, "order": order[:MOST].tolist()}
    if len(shifts) == 1 and size > 2:
        shift = int(shifts[0]) if shifts[0] <= size // 2 else int(shifts[0]) - size
        name, evidence = "shifted", {"axis": axis, "shift": shift, "is_wrapped": True}
    yield wrong.found(name, evidence, moved(wrong.expected), _moved(wrong, moved))


def _nearest(actual: Array, expected: Array, is_wrong: Array) -> Array | None:
    """For each slice of a result the nearest one of the reference: itself where it is right."""
    if not (np.isfinite(np.add.reduce(actual, axis=None)) and np.isfinite(np.add.reduce(expected, axis=None))):
        return None
    weights = np.random.default_rng(SEED).standard_normal((actual.shape[1], WEIGHTINGS))
    sums, wanted = actual @ weights, expected @ weights
    order = np.arange(len(actual))
    for slice_number in np.flatnonzero(is_wrong).tolist():
        order[slice_number] = np.abs(wanted - sums[slice_number]).sum(1).argmin()
    return order


def reordered(wrong: Wrong) -> Iterator[Found | None]:
    """The same elements, anywhere. Noise also leaves their distribution, so that they must be far from their places."""
    actual, expected, count = wrong.actual, wrong.expected, len(wrong.actual)
    if not MOST <= count <= MOST_SORTED or np.iscomplexobj(actual) or wrong.digits < PRECISIONS["float32"].digits:
        return
    metrics = Metrics(*wrong.pair.row["metrics"])
    if not abs(metrics.actual_square - metrics.expected_square) <= SAME * metrics.expected_square:
        return
    places = np.flatnonzero(wrong.wrong)
    scatter = float(np.std(expected.astype(np.float64)))
    conditioning = wrong.conditioning + np.zeros(count)
    if not rms(wrong.error[places]) >= DISTANCE * scatter or not rms(conditioning) <= SHARP * scatter:
        return
    if len(np.unique(expected[places][:4096])) < MOST:
        return
    order, wanted = actual.argsort(kind="stable"), expected.argsort(kind="stable")
    candidate, its_conditioning = np.empty_like(expected), np.empty(count)
    candidate[order], its_conditioning[order] = expected[wanted], conditioning[wanted]
    yield wrong.found("reordered", {}, candidate, its_conditioning)


def _moved(wrong: Wrong, moved: Any) -> Array | float:
    conditioning = wrong.conditioning
    return moved(conditioning) if isinstance(conditioning, np.ndarray) else conditioning
