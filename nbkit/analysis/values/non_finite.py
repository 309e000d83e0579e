"""Finds results that hold NaN or Inf, as far as the values of tensors were read."""

from dataclasses import dataclass

import pandas as pd

from nbkit.schema import TENSORS


@dataclass(frozen=True)
class NonFinite:
    """Counts the results looked at and those with NaN and Inf, with the first op that gives one."""

    looked_at: int
    nan_count: int
    first_nan_op: int | None
    inf_count: int
    first_inf_op: int | None


def non_finite(tensors: pd.DataFrame) -> NonFinite:
    """Returns what is known of the results among `tensors`; all counts are 0 where no values were read."""
    results = TENSORS.check(tensors)[tensors["role"] == "output"]
    known = results[results["nan_count"].notna()]
    with_nan, with_inf = known[known["nan_count"] > 0], known[known["inf_count"] > 0]
    return NonFinite(len(known), len(with_nan), _first_op(with_nan), len(with_inf), _first_op(with_inf))


def _first_op(rows: pd.DataFrame) -> int | None:
    return int(rows["op_id"].min()) if len(rows) else None
