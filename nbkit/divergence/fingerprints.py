"""Numbers the tensors of two recordings: one number for all whose statistics are the same but for rounding."""

import numpy as np
import numpy.typing as npt
import pandas as pd

from nbkit.divergence.runs import Run
from nbkit.divergence.spread import LEEWAY

MOST = 0.02  # of a difference, also in a coarse dtype
UNKNOWN = -1

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def fingerprints(left: Run, right: Run) -> tuple[list[int], list[int]]:
    """Returns a number for each row of `tensors` of both runs; -1 where no statistics are known, or NaN and Inf are.

    Equal numbers mean as many elements, the same norm and the same least and largest value, whatever shape and order.
    """
    table = pd.concat([run.table[["numel", "norm", "min", "max"]] for run in (left, right)], ignore_index=True)
    norm, low, high = (table[name].to_numpy(np.float64, na_value=np.nan) for name in ("norm", "min", "max"))
    extent = np.maximum(np.abs(low), np.abs(high))
    eps = np.array([tensor.eps for run in (left, right) for tensor in run.tensors], dtype=np.float64)
    tolerance = np.clip(LEEWAY * eps, 1e-12, MOST)
    with np.errstate(all="ignore"):
        ends = [np.where(extent > 0, end / extent, 0.0) for end in (low, high)]
        logarithms = [np.log(np.maximum(size, 1e-300)) for size in (norm, extent)]
    numbers = table["numel"].to_numpy(np.int64)
    for values in (*logarithms, *ends):
        numbers = _split(numbers, values, tolerance)
    is_known = np.isfinite(norm) & np.isfinite(extent)
    found = np.where(is_known, numbers, UNKNOWN).tolist()
    return found[: len(left.table)], found[len(left.table) :]


def _split(groups: Ints, values: Floats, tolerance: Floats) -> Ints:
    """Returns groups within the given ones: a new one begins where a value is larger than the one before it allows."""
    order = np.lexsort((values, groups))
    ordered, allowed = values[order], tolerance[order]
    is_other = np.diff(groups[order], prepend=-1) != 0
    with np.errstate(all="ignore"):
        gap = np.diff(ordered, prepend=0.0)
    is_new = is_other | ~(gap <= np.maximum(allowed, np.roll(allowed, 1)))
    split = np.empty(len(values), dtype=np.int64)
    split[order] = np.cumsum(is_new)
    return split
