"""Measures how far `actual` is from `expected`, pair by pair, in float64 and never after rounding down.

Definitions, for every frame that has these columns:

- abs error |actual - expected|; rel error |actual - expected| / |expected| with 0/0 = 0 and x/0 = inf, no epsilon;
- cosine similarity of the flattened pair, <actual, expected> / (|actual| |expected|), of complex pairs the real part of
  the inner product; 1 where both are zero, 0 where one is, NaN where the squares overflow float64;
- ULP: distance in representable values of the compared dtype; fractional, as `expected` is not rounded first; of a
  complex pair that of the worse part, of integers and bools their difference;
- noise ratio: the largest |error| over what rounding the result may do to that element, eps (|expected| + root mean
  square of the tensor's expected values) + the dtype's smallest number;
- bias ratio: |mean signed error| over the scatter that independent roundings leave in it, rms error / sqrt(numel);
- positions where both are NaN, or both the same Inf, agree: error 0, counted in the NaN and Inf counts, left out of
  the cosine. So does an `expected` beyond the dtype's range where `actual` overflowed to the same side (in dtypes
  without Inf: is NaN or the largest number). Where only one is NaN the error is NaN, and so is what is made of it; the
  noise ratio is then Inf;
- +0 and -0 agree.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from nbkit.numerics.blocks import inner_product
from nbkit.numerics.precision import Array, Precision, farthest, largest_ulp

# Columns of NaN and Inf.
COUNTS = ("actual_nan_count", "expected_nan_count", "actual_inf_count", "expected_inf_count")
# Elements measured at a time: a dozen arrays of so many float64 stay in a core's cache.
CHUNK = 1 << 15
FIRST = np.zeros(1, dtype=np.intp)


class Metrics(NamedTuple):
    """Holds columns with one value per pair; the sums let pieces of a pair be put together."""

    numel: Array
    actual_nan_count: Array
    expected_nan_count: Array
    actual_inf_count: Array
    expected_inf_count: Array
    max_abs_error: Array
    max_rel_error: Array
    max_ulp: Array
    noise_ratio: Array
    sum_abs_error: Array
    sum_error: Array  # signed; of complex pairs the real part
    sum_squared_error: Array
    inner: Array
    actual_square: Array
    expected_square: Array

    @classmethod
    def of_rows(cls, rows: Array) -> "Metrics":
        """Returns metrics from rows of numbers, one for each pair."""
        columns = cls(*rows.T)
        return columns._replace(**{name: getattr(columns, name).astype(np.int64) for name in COUNTS})

    @property
    def mean_abs_error(self) -> Array:
        """Returns the mean over the elements; 0 of an empty pair."""
        return self.sum_abs_error / np.maximum(self.numel, 1)

    @property
    def cosine_similarity(self) -> Array:
        """Returns the cosine of the angle between the two, from -1 to 1."""
        with np.errstate(all="ignore"):
            # The roots first: the product of the squares can overflow where the cosine does not.
            cosine = self.inner / np.sqrt(self.actual_square) / np.sqrt(self.expected_square)
        zeros = (self.actual_square == 0).astype(int) + (self.expected_square == 0)
        return np.select([zeros == 2, zeros == 1], [1.0, 0.0], np.clip(cosine, -1.0, 1.0))

    @property
    def bias_ratio(self) -> Array:
        """Returns |mean signed error| over rms error / sqrt(numel); 0 of an exact pair."""
        with np.errstate(all="ignore"):
            ratio = np.abs(self.sum_error) / np.sqrt(self.sum_squared_error)
        return np.where(self.sum_squared_error == 0, 0.0, ratio)


MAXIMA = ("max_abs_error", "max_rel_error", "max_ulp", "noise_ratio")


def joined(parts: list[Metrics]) -> Metrics:
    """Returns metrics of many pairs as one."""
    return Metrics(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def total(pieces: Metrics) -> Metrics:
    """Returns metrics of one pair from those of its pieces."""
    columns = zip(Metrics._fields, pieces, strict=True)
    return Metrics(
        *(np.array([column.max(initial=0.0) if name in MAXIMA else column.sum()]) for name, column in columns)
    )


def measure(actual: Array, expected: Array, starts: Array, precision: Precision | None) -> Metrics:
    """Returns metrics of pairs that stand one after the other in flat arrays, each from its start to the next.

    The arrays are float64 or complex128 with the precision of the compared dtype, or integers and None. No pair is
    empty.
    """
    with np.errstate(all="ignore"):
        if precision is None:
            return _measured_integers(actual, expected, starts)
        scale = np.sqrt(_dot(expected, expected, starts) / _lengths(starts, len(expected)))
        if not np.isfinite(scale).all():
            scale = np.array([rms(piece) for piece in np.split(expected, starts[1:])])
        return _measured(actual, expected, starts, precision, scale)


def measure_one(piece_of: Callable[[int, int], Array], expected: Array, precision: Precision | None) -> Metrics:
    """Measures one pair of any size: `piece_of` gives a part of `actual`, which need not be at hand as a whole."""
    if not len(expected):
        return Metrics(*(np.zeros(1) for _ in Metrics._fields))
    pieces, scale = [], np.array([0.0 if precision is None else rms(expected)])
    with np.errstate(all="ignore"):
        for start in range(0, len(expected), CHUNK):
            part = piece_of(start, start + CHUNK), expected[start : start + CHUNK]
            pieces.append(
                _measured_integers(*part, FIRST) if precision is None else _measured(*part, FIRST, precision, scale)
            )
    return total(joined(pieces))


def measured_one(actual: Array, expected: Array, precision: Precision, scale: float) -> Metrics:
    """Returns metrics of a piece of a pair whose expected values have the root mean square `scale`."""
    with np.errstate(all="ignore"):
        return _measured(actual, expected, FIRST, precision, np.array([scale]))


def agreed(actual: Array, expected: Array, precision: Precision) -> tuple[Array, Array]:
    """Returns the pair with zeros where both are NaN, both the same Inf, or `actual` overflowed as its dtype has to."""
    expected = _within(expected, precision)
    if np.isfinite(np.add.reduce(actual)) and np.isfinite(np.add.reduce(expected)):
        return actual, expected
    # Only these can agree otherwise than by their numbers; mostly they are few, or stand together.
    places = np.flatnonzero(~np.isfinite(actual))
    left, right = actual[places], expected[places]
    same = (np.isnan(left) & np.isnan(right)) | (np.isinf(left) & (left == right))
    if not np.iscomplexobj(actual):
        # What is beyond the largest number overflows; just before it, either is right.
        out = np.abs(right) > precision.largest * (1 - precision.eps)
        same_side = np.isinf(left) & (np.signbit(left) == np.signbit(right))
        same |= out & ~np.isnan(right) & (same_side if precision.has_inf else np.isnan(left))
    places = places[same]
    actual, expected = actual.copy(), expected.copy()
    actual[places] = expected[places] = 0
    return actual, expected


def _within(expected: Array, precision: Precision) -> Array:
    """Returns what a dtype without Inf makes of the reference: it stops at its largest number, or gives NaN."""
    if precision.has_inf:
        return expected
    return np.clip(expected, -precision.largest, precision.largest)


def rms(values: Array) -> float:
    """Returns the root mean square of the finite values; 0 where there is none."""
    with np.errstate(all="ignore"):
        square = float(_dot(values, values, FIRST)[0])
        if np.isfinite(square):
            return float(np.sqrt(square / max(len(values), 1)))
        finite = np.abs(values[np.isfinite(values)])
        largest = float(finite.max(initial=0.0))
        # Scaled first: squares of what is finite can overflow.
        return largest * float(np.sqrt(np.mean((finite / largest) ** 2))) if largest else 0.0


def _measured(actual: Array, expected: Array, starts: Array, precision: Precision, scale: Array) -> Metrics:
    """Returns metrics of pairs whose expected values have the root mean square `scale`.

    In few passes over the data, since they are what comparing costs: NaN and Inf are counted only where there are some.
    """
    expected = _within(expected, precision)
    none = np.zeros(len(starts), dtype=np.int64)
    counts = (none, none, none, none)
    error = actual - expected
    size = np.abs(error)
    sums = np.add.reduceat(size, starts)
    if not np.isfinite(np.add.reduce(sums)):
        counts = _counted(actual, expected, starts)
        actual, expected = agreed(actual, expected, precision)
        error = actual - expected
        size = np.abs(error)
        sums = np.add.reduceat(size, starts)
    expected_size = np.abs(expected)
    relative = size / expected_size
    largest = np.maximum.reduceat(size, starts)
    # 0/0 counts as 0 and is left out; where an error is NaN, all that is made of it is.
    largest_relative = np.where(np.isnan(largest), np.nan, _unless_nan(np.fmax.reduceat(relative, starts), 0.0))
    ends = actual, expected, expected_size, relative
    if len(starts) == 1 and np.isfinite(largest[0]) and not np.iscomplexobj(actual):
        places = farthest(expected_size, relative, precision)
        ends = actual[places], expected[places], expected_size[places], relative[places]
    return Metrics(
        _lengths(starts, len(actual)),
        *counts,
        max_abs_error=largest,
        max_rel_error=largest_relative,
        max_ulp=largest_ulp(*ends, starts, precision),
        noise_ratio=_noise_ratio(size, expected_size, starts, precision, scale),
        sum_abs_error=sums,
        sum_error=np.add.reduceat(error, starts).real,
        sum_squared_error=_dot(error, error, starts),
        inner=_dot(actual, expected, starts),
        actual_square=_dot(actual, actual, starts),
        expected_square=_dot(expected, expected, starts),
    )


def _noise_ratio(size: Array, expected_size: Array, starts: Array, precision: Precision, scale: Array) -> Array:
    """Returns the noise ratio of each pair; overwrites `expected_size`."""
    level = scale + precision.spacing / precision.eps
    expected_size += level[0] if len(level) == 1 else np.repeat(level, _lengths(starts, len(size)))
    np.divide(size, expected_size, out=expected_size)
    return _unless_nan(np.maximum.reduceat(expected_size, starts) / precision.eps, np.inf)


def _measured_integers(actual: Array, expected: Array, starts: Array) -> Metrics:
    error = _integer_error(actual, expected)
    size = np.abs(error)
    left, right = actual.astype(np.float64), expected.astype(np.float64)
    largest, none = np.maximum.reduceat(size, starts), np.zeros(len(starts), dtype=np.int64)
    return Metrics(
        _lengths(starts, len(actual)),
        *(none, none, none, none),
        max_abs_error=largest,
        max_rel_error=_unless_nan(np.fmax.reduceat(size / np.abs(right), starts), 0.0),
        max_ulp=largest,
        noise_ratio=np.where(largest > 0, np.inf, 0.0),
        sum_abs_error=np.add.reduceat(size, starts),
        sum_error=np.add.reduceat(error, starts),
        sum_squared_error=_dot(error, error, starts),
        inner=_dot(left, right, starts),
        actual_square=_dot(left, left, starts),
        expected_square=_dot(right, right, starts),
    )


def _integer_error(actual: Array, expected: Array) -> Array:
    """Returns the signed difference without wrap-around: modulo 2^64, the larger less the smaller is exact."""
    wide = np.uint64 if actual.dtype == np.uint64 else np.int64
    left, right = actual.astype(wide), expected.astype(wide)
    unsigned = left.view(np.uint64), right.view(np.uint64)
    is_above = left > right
    size = np.where(is_above, unsigned[0] - unsigned[1], unsigned[1] - unsigned[0]).astype(np.float64)
    return np.where(is_above, size, -size)


def _counted(actual: Array, expected: Array, starts: Array) -> tuple[Array, Array, Array, Array]:
    """Returns NaN counts of both sides, then Inf counts of both."""
    nans = [np.add.reduceat(np.isnan(side), starts, dtype=np.int64) for side in (actual, expected)]
    infs = [np.add.reduceat(np.isinf(side), starts, dtype=np.int64) for side in (actual, expected)]
    return nans[0], nans[1], infs[0], infs[1]


def _dot(left: Array, right: Array, starts: Array) -> Array:
    """Returns the sum of products of each pair; of complex ones the real part of the inner product."""
    if len(starts) == 1:
        return np.array([inner_product(left, right)])
    products: Array = np.add.reduceat((left.conj() * right).real if np.iscomplexobj(left) else left * right, starts)
    return products


def _unless_nan(values: Array, otherwise: float) -> Array:
    return np.where(np.isnan(values), otherwise, values)


def _lengths(starts: Array, end: int) -> Array:
    return np.array([end]) if len(starts) == 1 else np.append(starts[1:], end) - starts
