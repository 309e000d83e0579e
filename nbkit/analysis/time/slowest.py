"""The groups of calls that take most of the time, each with its slowest call."""

import pandas as pd

from nbkit.analysis.time.times import SELF_US, host_ops, self_totals


def slowest_groups(ops: pd.DataFrame, names: list[str], count: int) -> pd.DataFrame:
    """The `count` slowest of `self_totals(ops, names)`, with `op_id`: the call of each with most self time."""
    totals, rows = self_totals(ops, names).head(count), host_ops(ops)
    groups = rows.fillna({SELF_US: 0.0}).groupby(names, dropna=False, sort=False)[SELF_US]
    slowest = rows.loc[groups.idxmax(), [*names, "op_id"]]
    return totals.merge(slowest, on=names, how="left")
