"""Finds the op at which two runs diverge, and those at which their distance grows most and costs half of the digits."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from nbkit.divergence.origins import Origin
from nbkit.numerics.noise_ratio import FAULTY
from nbkit.numerics.precision import precision_of

Milestone = dict[str, Any]
Bools = npt.NDArray[np.bool_]
OFF = 0.1  # of the norm of a result
NAMES = ("op", "module", "phase", "message", "message_values")


def milestones(
    diffs: pd.DataFrame, ops: pd.DataFrame, origins: list[Origin], is_noise: Bools
) -> dict[str, Milestone | None]:
    """Returns milestones for meta, by name; null for none.

    first_divergence: the first op whose own error is more than its dtype and conditioning allow. largest_growth: the op
    whose result's total error is the largest multiple of the largest one of its inputs (or of the dtype's eps, if that
    is more). largest_error: the op before the optimizer whose result has the largest total error; an optimizer that
    divides by the root of gradients makes any update of one that is zero but for rounding. half_precision_lost_at: the
    first op whose total error exceeds the root of the eps of the coarsest dtype on the way to it. Rows where `is_noise`
    are results that are zero but for rounding, which count for the first alone.
    """
    total = diffs["total_error"].to_numpy(np.float64)
    eps = np.array([_eps(dtype) for dtype in diffs["dtype"]], dtype=np.float64)
    before = np.maximum(np.array([origin.input_error for origin in origins], dtype=np.float64), eps)
    coarsest = np.fmax(eps, np.array([origin.eps for origin in origins], dtype=np.float64))
    error = np.where(np.isnan(total) | is_noise, 0.0, total)
    with np.errstate(all="ignore"):
        growth = np.where(np.isnan(total / before) | is_noise, 0.0, total / before)
        is_half_precision_lost = error > np.sqrt(coarsest)
    faulty = np.flatnonzero(diffs["status"].isin(FAULTY).to_numpy())
    grown = [int(growth.argmax())] if len(growth) and growth.max() > 1 else []
    before_update = np.where((diffs["phase"] == "optimizer").to_numpy(), 0.0, error)
    largest = [int(before_update.argmax())] if len(error) and before_update.max() > 0 else []
    lost = np.flatnonzero(is_half_precision_lost)
    return {
        "first_divergence": _milestone(diffs, ops, faulty[:1]),
        "largest_growth": _milestone(diffs, ops, grown, before=before),
        "half_precision_lost_at": _milestone(diffs, ops, lost[:1], level=np.sqrt(coarsest)),
        "largest_error": _milestone(diffs, ops, largest, level=np.sqrt(coarsest)),
    }


def off_without_fault(meta: Mapping[str, Any]) -> float | None:
    """Returns the largest total error of a step with no op at fault, if it is more than OFF; null otherwise.

    Of another run that is coarser than the step nothing is told: its own rounding is in the error.
    """
    largest = meta.get("largest_error")
    if meta.get("first_divergence") is not None or largest is None or not largest["total_error"] > OFF:
        return None
    is_coarser = np.sqrt(np.nan_to_num(_eps(str(meta.get("against")).split(":")[-1]))) > largest["level"]
    return None if is_coarser else float(largest["total_error"])


def _milestone(diffs: pd.DataFrame, ops: pd.DataFrame, numbers: Any, **more: Any) -> Milestone | None:
    if not len(numbers):
        return None
    number = int(numbers[0])
    row = diffs.iloc[number]
    op_id = int(row["op_id"])
    texts = {name: row[name] for name in NAMES} | {"source": ops["source"].iloc[op_id]}
    figures = {name: row[name] for name in ("local_error", "propagated_error", "total_error", "noise_ratio")}
    figures |= {name: values[number] for name, values in more.items()}
    return {
        "op_id": op_id,
        **{name: text if isinstance(text, str) else None for name, text in texts.items()},
        **{name: None if pd.isna(value) else float(value) for name, value in figures.items()},
    }


def _eps(dtype: object) -> float:
    precision = precision_of(str(dtype))
    return precision.eps if precision is not None else np.nan
