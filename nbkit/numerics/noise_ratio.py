"""Tells when a difference is an error: sets it against what the op's own conditioning and its dtype allow.

For an op f, inputs x, output y in the device's dtype and r = f(x) in float64 from the same inputs:

    c = max over draws of |f(x (1 + eps s)) - r|, s random signs    what the smallest change of the inputs does
    q = c + eps(dtype of y) |r|                                      the scale of each element
    floor = q + root mean square of q                               an element that cancels is judged by its tensor
    noise ratio = max |y - r| / floor

A correct kernel has a ratio of order 1; an incorrect one is far above. With c left out the ratio can only be larger,
so that most ops are settled by r alone: c is asked for where that is not enough. Of a matrix product it is asked for
only the elements whose ratio is too large without it, from their rows and columns alone; c counts as 0 elsewhere.

A kernel that adds K products one after the other rounds each partial sum: its error grows like K where c grows like the
root of K. What is computed in the accumulator's precision is therefore allowed growth() times as much: one running sum
of K = 4,096 float32 products of numbers between 0 and 1 has a ratio of 11.6 without it and of 1.5 with it.

A matrix product in half precision that is accumulated in float32 rounds once: by half of eps |r|, however long its sums
are, so that its ratio would be 0.5 or less. It is allowed SINGLE_ROUNDING of eps |r|, which makes that 2 or less.

A fault below the rounding of the result (ratio < 1) cannot be told from a single op. The bias ratio shows one that
is biased; it decides nothing, since equal elements are rounded alike, however correct the op is.
"""

from collections.abc import Sequence
from math import sqrt
from typing import NamedTuple

import numpy as np

from nbkit.numerics.metrics import CHUNK, agreed, rms
from nbkit.numerics.precision import Array, Precision

THRESHOLD = 8.0
# What a product in half precision is allowed of eps |r|.
SINGLE_ROUNDING = 0.25
# The statuses of `diffs`, from the worst to what needs no look.
STATUSES = ("mismatch", "shape", "dtype", "failed", "reduced", "ok", "skipped")
# Of an op at fault; of one that is right; and of all that needs no look.
FAULTY = STATUSES[:3]
RIGHT = STATUSES[4:6]
HARMLESS = STATUSES[4:]


class Allowance(NamedTuple):
    """Says how many times what rounding of the result, and of the inputs, does an op may be off."""

    rounding: float = 1.0  # eps |r|
    conditioning: float = 1.0  # c


ONCE = Allowance()


def allowance(precision: Precision, factor: float, is_product: bool) -> Allowance:
    """Returns what is allowed a result of this precision whose partial sums may do growth() times as much."""
    if accumulates_alike(precision):
        return Allowance(factor, factor)
    return Allowance(SINGLE_ROUNDING if is_product else 1.0, factor)


def growth(length: float) -> float:
    """Returns how much more rounding of partial sums may do, from how many numbers an element of the output is made of.

    A tenth of the root of that is what one running sum makes (an eighth is allowed); beyond 4,096 good kernels add in
    blocks, so that the factor is at most 8.
    """
    return min(max(sqrt(length) / 8, 1.0), 8.0)


def running_growth(length: float) -> float:
    """Returns the same for a single running sum of over 4,096 numbers, as that of torch's float32 norm on the CPU.

    Beyond 262,144 small numbers lose most of their bits to the sum: the error grows like the length itself.
    """
    return max(sqrt(length) / 8, length / 4096)


def summed(input_numels: Sequence[int], output_numel: int) -> float:
    """Counts the numbers an element of the output is made of: K for a product of (m, K) and (K, n), and a sum of K."""
    two = sorted(input_numels)[-2:]
    if not two or not output_numel:
        return 1.0
    length = two[-1] / output_numel
    return max(length, sqrt(two[0]) * sqrt(length)) if len(two) == 2 else length


def accumulates_alike(precision: Precision) -> bool:
    """Returns whether results of this precision are accumulated in it; narrower ones are in float32."""
    return precision.digits >= 23


def noise_ratios(
    actual: Array,
    expected: Array,
    conditioning: Array | float,
    precision: Precision,
    allowed: Allowance = ONCE,
    level: float | None = None,
) -> Array:
    """Returns the noise ratio of every element of a pair; inf where NaN or Inf stand on one side only.

    Of elements that are only a part of a tensor, `level` is the root mean square of q for all.
    """
    ratios = np.empty(len(expected))
    with np.errstate(all="ignore"):
        if level is None:
            level = rms(_scale(*agreed(actual, expected, precision)[1:], conditioning, precision, allowed))
        # In parts that stay in the cache: this is most of what a re-check costs.
        for start in range(0, len(expected), CHUNK):
            part = slice(start, start + CHUNK)
            left, right = agreed(actual[part], expected[part], precision)
            its_own = conditioning[part] if isinstance(conditioning, np.ndarray) else conditioning
            floor = _scale(right, its_own, precision, allowed)
            floor += level + precision.spacing
            quotients = np.abs(left - right, out=ratios[part])
            quotients /= floor
            if not np.isfinite(np.add.reduce(quotients)):
                # An unbounded conditioning allows any finite value, and none that is not.
                quotients[np.isnan(quotients)] = 0.0
                quotients[~(np.isfinite(left) & np.isfinite(right))] = np.inf
    return ratios


def least_level(expected: Array, precision: Precision, allowed: Allowance) -> float:
    """Returns the least root mean square of q: that of its part that needs no conditioning."""
    return rms(expected) * precision.eps * allowed.rounding


def _scale(expected: Array, conditioning: Array | float, precision: Precision, allowed: Allowance) -> Array:
    """Returns q of each element."""
    scale: Array = np.abs(expected)
    scale *= precision.eps * allowed.rounding
    if isinstance(conditioning, np.ndarray) or conditioning:
        scale += allowed.conditioning * conditioning
    return scale


def outside(actual: Array, expected: Array, precision: Precision | None, tolerance: tuple[float, float]) -> Array:
    """Returns which elements are further off than atol + rtol |expected|, or NaN or Inf on one side only."""
    atol, rtol = tolerance
    with np.errstate(all="ignore"):
        if precision is not None:
            actual, expected = agreed(actual, expected, precision)
            is_near: Array = np.abs(actual - expected) <= atol + rtol * np.abs(expected)
            return ~is_near
    differs: Array = actual != expected
    return differs


def where_not_finite(metrics: tuple[int, int, int, int]) -> str | None:
    """Returns what the counts of NaN and Inf of both sides say; None where they agree."""
    actual_nan, expected_nan, actual_inf, expected_inf = metrics
    parts = [
        f"{actual} {name}, expected {expected}"
        for name, actual, expected in (("NaN", actual_nan, expected_nan), ("Inf", actual_inf, expected_inf))
        if actual != expected
    ]
    return "; ".join(parts) or None
