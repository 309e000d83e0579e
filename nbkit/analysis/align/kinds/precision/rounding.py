"""Tests whether one side has been rounded to a dtype of fewer bits than the other side's values have."""

import numpy as np
import numpy.typing as npt

from nbkit.analysis.align.kinds.case import Case, Floats, norm
from nbkit.analysis.align.kinds.registry import Kinds, kind_test
from nbkit.analysis.align.region import Kind
from nbkit.numerics.precision import PRECISIONS

DTYPES = ("float16", "bfloat16")
# The share of elements that are exactly the rounded ones where only the result was rounded.
ROUNDED = 0.98
# How many eps an element may be off where steps within were rounded, too; few are.
STEPS = 4


@kind_test("accumulation_dtype", 40, lambda case: case.is_same_shape and case.is_finite and case.left.size >= 16)
def accumulation_dtype(case: Case) -> Kinds:
    """Tests whether one side is the other within the rounding of a dtype, and holds numbers of that dtype alone.

    What the rounding of steps within may do counts as explained: `explained` is what lies beyond the dtype's eps.
    """
    is_float = all(np.issubdtype(one.dtype, np.floating) for one in (case.region.left, case.region.right))
    if not is_float or not 0 < case.distance <= 0.05 * case.size:
        return
    how = "rounded to" if case.is_weight else "computed in"
    for dtype in DTYPES:
        coarse = [side for side in case.sides if _is_rounded(side.values, dtype)]
        explained = _explained(case, coarse[0].values, coarse[0].beside, dtype) if len(coarse) == 1 else None
        if explained is not None:
            names = coarse[0].name, coarse[0].other
            message = f"The {names[0]} one is {how} {dtype}: it is the {names[1]} one within that dtype's rounding."
            yield Kind("accumulation_dtype", message, explained)


def _explained(case: Case, coarse: Floats, fine: Floats, dtype: str) -> float | None:
    candidate = rounded(fine, dtype)
    error, precision = np.abs(coarse - fine), PRECISIONS[dtype]
    # Rounding to the nearest gives about 0.2 eps, and rounding of steps within some more.
    if not 0.1 <= norm(error) / max(norm(fine), 1e-300) / precision.eps <= 0.8:
        return None
    if np.mean(coarse == candidate) >= ROUNDED:
        return norm(coarse - candidate) / case.distance
    allowed = STEPS * precision.eps * np.abs(fine) + precision.spacing
    beyond = norm(np.maximum(error - allowed, 0.0)) / case.distance
    return beyond if beyond <= 0.01 else None


def _is_rounded(values: Floats, dtype: str) -> bool:
    """Returns whether all values are numbers of a dtype; few that are integers or powers of two say nothing."""
    if not np.array_equal(rounded(values, dtype), values):
        return False
    mantissa, _ = np.frexp(values)
    return bool(np.mean((mantissa * 16) % 1 != 0) > 0.2)


def rounded(values: Floats, dtype: str) -> Floats:
    """Returns values rounded to the nearest number of float16 or bfloat16, ties to even."""
    if dtype == "float16":
        return values.astype(np.float16).astype(np.float64)
    return with_fewer_bits(values.astype(np.float32), 16).astype(np.float64)


def with_fewer_bits(values: npt.NDArray[np.generic], bits: int, *, to_nearest: bool = True) -> npt.NDArray[np.float32]:
    """Returns float32 without so many of its last bits: rounded to the nearest, ties to even, or toward zero."""
    held = np.ascontiguousarray(values).view(np.uint32)
    if to_nearest:
        held = held + np.uint32((1 << (bits - 1)) - 1) + ((held >> np.uint32(bits)) & np.uint32(1))
    return (held & np.uint32(2**32 - 2**bits)).view(np.float32).reshape(values.shape)
