"""Tells what each floating-point dtype can hold, and measures distances in its values (ULP)."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


class Precision(NamedTuple):
    """Describes what a floating-point dtype can hold."""

    digits: int  # bits after the leading one
    min_exponent: int  # of the smallest normal number
    largest: float
    has_inf: bool = True

    @property
    def eps(self) -> float:
        """Returns the distance from 1 to the next number."""
        return float(2.0**-self.digits)

    @property
    def least(self) -> float:
        """Returns the smallest normal number."""
        return float(2.0**self.min_exponent)

    @property
    def spacing(self) -> float:
        """Returns the distance of two numbers near zero."""
        return float(2.0 ** max(self.min_exponent - self.digits, -1074))


PRECISIONS = {
    "float64": Precision(52, -1022, 1.7976931348623157e308),
    "float32": Precision(23, -126, 3.4028234663852886e38),
    "bfloat16": Precision(7, -126, 3.3895313892515355e38),
    "float16": Precision(10, -14, 65504.0),
    "float8_e5m2": Precision(2, -14, 57344.0),
    "float8_e5m2fnuz": Precision(2, -15, 57344.0, has_inf=False),
    "float8_e4m3fn": Precision(3, -6, 448.0, has_inf=False),
    "float8_e4m3fnuz": Precision(3, -7, 240.0, has_inf=False),
    "float8_e8m0fnu": Precision(0, -127, 2.0**127, has_inf=False),
}
_PARTS = {"complex128": "float64", "complex64": "float32", "complex32": "float16"}
_EXACT = ("bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64")
DTYPES = (*PRECISIONS, *_PARTS, *_EXACT)


def precision_of(dtype: str) -> Precision | None:
    """Returns the precision of a floating-point dtype, or of a complex one's parts; None for integers and bools."""
    return PRECISIONS.get(_PARTS.get(dtype, dtype))


def largest_ulp(
    actual: Array, expected: Array, expected_size: Array, relative: Array, starts: Array, precision: Precision
) -> Array:
    """Returns each pair's largest distance in values of the dtype, from its start to the next; NaN where one is NaN.

    The arrays are float64 or complex128, of which the worse part counts; fractional, as `expected` is not rounded.
    `relative` are the rel errors and `expected_size` is |expected|.
    """
    if not len(actual):
        return np.zeros(len(starts))
    if np.iscomplexobj(actual):
        parts = ((actual.real.copy(), expected.real.copy()), (actual.imag.copy(), expected.imag.copy()))
        every = np.ones(len(actual), dtype=bool)
        distances = [_distance(left, right, every, precision) for left, right in parts]
        return np.maximum.reduceat(np.maximum(*distances), starts)
    steps = actual.view(np.int64) - expected.view(np.int64)
    np.abs(steps, out=steps)
    if np.minimum.reduce(expected_size) >= 2 * precision.least and np.maximum.reduce(relative) <= 0.5:
        # Within one sign, and above the smallest normal number, the bits of a float64 count its values in order.
        return np.maximum.reduceat(steps, starts) * 2.0 ** (precision.digits - 52)
    is_other = actual != expected
    odd = ~((expected_size >= 2 * precision.least) & (relative <= 0.5)) & is_other
    distance = steps * (is_other * 2.0 ** (precision.digits - 52))  # of the two zeros, the bits differ
    if odd.any():
        distance[odd] = _distance(actual, expected, odd, precision)
    return np.maximum.reduceat(distance, starts)


def farthest(expected_size: Array, relative: Array, precision: Precision) -> Array:
    """Returns the places of real, finite elements among which the largest distance is; none where all are equal.

    A distance is from half to twice the rel error, in eps, but not near zero, where values lie evenly. All rel errors
    beyond 0.5 are chosen.
    """
    is_small = expected_size < 2 * precision.least
    if not is_small.any():
        return np.flatnonzero(relative >= min(np.fmax.reduce(relative), 0.5) / 4)
    largest = np.fmax.reduce(relative[~is_small], initial=0.0)
    return np.flatnonzero((relative > 0) & (is_small | (relative >= min(largest, 0.5) / 4)))


def _distance(actual: Array, expected: Array, chosen: Array, precision: Precision) -> Array:
    """Returns the distance of the chosen elements, whatever they are."""
    ends = actual[chosen], expected[chosen]
    same_sign = np.signbit(ends[0]) == np.signbit(ends[1])
    first, second = (_values_below(np.abs(end), precision) for end in ends)
    distance = np.where(same_sign, np.abs(first - second), first + second)
    return np.where(np.isnan(ends[0]) | np.isnan(ends[1]), np.nan, distance)


def _values_below(size: Array, precision: Precision) -> Array:
    """Returns how many values of the dtype lie between zero and `size`, the last step a fraction."""
    least = precision.least
    above = (size.view(np.int64) - np.float64(least).view(np.int64)) * 2.0 ** (precision.digits - 52)
    # In two steps, as the spacing of the smallest numbers has no inverse in float64.
    below = size / least * 2.0**precision.digits
    return np.where(size < least, below, above + 2.0**precision.digits)
