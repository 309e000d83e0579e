"""Judges every element by its own size, in ops whose elements are each well determined, however small they are.

The noise ratio of a tensor sets an element that is small beside the others against their root mean square: what
cancels cannot be more exact. Copies, products and quotients of two numbers, exp, softmax and the like do not cancel:
their kernels are right to some eps of each element, and to what a change of their inputs by eps does to it. Below some
1e-35 kernels may give zero: exp() of the other sign has overflowed.
"""

import numpy as np
from torch import Tensor

from nbkit.capture.diff.pair import Pair, flat
from nbkit.capture.diff.rechecks.scalars import noise_of_scalars
from nbkit.capture.replay.op_traits import OpTraits
from nbkit.capture.replay.reference import Call
from nbkit.numerics.metrics import agreed
from nbkit.numerics.precision import PRECISIONS, Array, Precision
from nbkit.ops.families import family
from nbkit.ops.rounding import WELL_DETERMINED

SUMS = family("ADDS SUBTRACTS")
DRAWS = (1, 2, 8)
LEAST = 2.0**10  # times the smallest normal number


def is_well_determined(traits: OpTraits) -> bool:
    """Whether each element of an op's results can be judged by its own size; not where it rounds to whole numbers."""
    return traits.packet in WELL_DETERMINED and not traits.name.endswith("_mode")


def recheck_each(pair: Pair, precision: Precision, threshold: float) -> tuple[float, Array | None]:
    """The largest error of an element over what it may have by itself, and which are wrong; None where none is."""
    eps = min(precision.eps, PRECISIONS["float32"].eps)
    with np.errstate(all="ignore"):
        actual, expected = agreed(pair.actual, pair.expected, precision)
        error = np.abs(actual - expected)
        floor = precision.eps * np.abs(expected) + least(precision) / threshold
    ratios = error / floor
    for draws in DRAWS:
        if (worst := float(ratios.max(initial=0.0))) <= threshold:
            return worst, None
        conditioning = flat(pair.call.conditioning(draws, eps)[pair.position], copy=False)
        ratios = error / (floor + conditioning)
    noise = noise_of_scalars(pair.call, pair.position, pair.expected) + _noise_of_numbers(pair.call, precision)
    ratios = error / (floor + conditioning + noise)
    worst = float(ratios.max(initial=0.0))
    return worst, ratios > threshold if worst > threshold else None


def _noise_of_numbers(call: Call, precision: Precision) -> float:
    """What rounding the number that is added to a tensor, also one in a tensor without dimensions, may do to a sum."""
    if call.traits.packet not in SUMS:
        return 0.0
    values = [value for value in (*call.args, *call.kwargs.values()) if not isinstance(value, bool)]
    numbers = [abs(value) for value in values if isinstance(value, int | float)]
    numbers += [float(value.abs()) for value in values if isinstance(value, Tensor) and not value.dim()]
    return precision.eps * max(numbers, default=0.0)


def least(precision: Precision) -> float:
    """What may be lost whatever the element is; float16 holds its smallest numbers on every device."""
    return (
        LEAST * precision.least if precision.min_exponent <= PRECISIONS["float32"].min_exponent else precision.spacing
    )
