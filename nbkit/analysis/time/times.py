"""Sums calls, self and total time, on the host and on devices, by op, module, phase and input shapes.

All functions leave kernels out, unless there is nothing else: their time is in the device columns of the ops that
launched them. The self time of the levels api, module and range is Python's and waiting, not an op's: give
`computing_ops(ops)` for the ops' own work, or all ops for shares of the whole step (all self times sum to it).
"""

import numpy as np
import numpy.typing as npt
import pandas as pd

from nbkit.analysis.query.module_tree import module_tree
from nbkit.schema import MODULES, OPS

Ints = npt.NDArray[np.int64]
# The one order in which views name them.
PHASES = ("forward", "backward", "optimizer", "other")
SELF_US, TOTAL_US = "self_time_us", "total_time_us"
SELF_DEVICE_US, TOTAL_DEVICE_US = "self_device_time_us", "total_device_time_us"


def computing_ops(ops: pd.DataFrame) -> pd.DataFrame:
    """Returns the ops that do the work: those of level aten where there are any, else all of the host, else all.

    The self time of an API call is Python's, not the op's.
    """
    is_aten = OPS.check(ops)["level"] == "aten"
    return ops[is_aten].reset_index(drop=True) if is_aten.any() else host_ops(ops)


def host_ops(ops: pd.DataFrame) -> pd.DataFrame:
    """Returns all rows but the kernels, if there are any such; their self times do not overlap within a thread."""
    is_host = OPS.check(ops)["level"] != "kernel"
    return ops[is_host].reset_index(drop=True) if is_host.any() and not is_host.all() else ops


def by_op(ops: pd.DataFrame) -> pd.DataFrame:
    """Returns per kind of op, most self time first: op and the columns of `time_totals`."""
    return time_totals(ops, ["op"])


def by_module(ops: pd.DataFrame) -> pd.DataFrame:
    """Returns per module without those below it, most self time first: model, module and those of `time_totals`.

    Ops outside any module are one row with null names.
    """
    return time_totals(ops, ["model", "module"])


def self_by_phase(ops: pd.DataFrame) -> pd.DataFrame:
    """Returns per phase, in the order of PHASES and then of time: phase and the columns of `self_totals`."""
    totals = self_totals(ops, ["phase"])
    rank = totals["phase"].map({phase: place for place, phase in enumerate(PHASES)}).fillna(len(PHASES))
    return totals.loc[rank.sort_values(kind="stable").index].reset_index(drop=True)


def by_module_and_phase(ops: pd.DataFrame) -> pd.DataFrame:
    """Returns per module and phase, most self time first: model, module, phase and the columns of `time_totals`."""
    return time_totals(ops, ["model", "module", "phase"])


def by_input_shapes(ops: pd.DataFrame) -> pd.DataFrame:
    """Returns per op and input shapes, most self time first: op, input_shapes and the columns of `time_totals`."""
    return time_totals(ops, ["op", "input_shapes"])


def by_kernel(ops: pd.DataFrame) -> pd.DataFrame:
    """Returns per device and kernel, most time first: device, op, calls, device_time_us, device_fraction of all."""
    kernels = ops[OPS.check(ops)["level"] == "kernel"]
    groups = kernels.groupby(["device", "op"], dropna=False, sort=False, as_index=False)
    totals = groups.agg(calls=("op_id", "size"), device_time_us=(TOTAL_US, "sum"))
    totals["device_fraction"] = _fractions(totals["device_time_us"])
    return totals.sort_values("device_time_us", ascending=False, kind="stable", ignore_index=True)


def by_module_tree(ops: pd.DataFrame) -> pd.DataFrame:
    """Returns per module with all modules below it, parents before children; ops outside any module are left out.

    Columns: model, module, depth, calls, self_time_us and self_device_time_us (its own), total_time_us and
    total_device_time_us (with all below it; forward and backward alike), total_fraction of all ops given. Device
    times are null where no kernel is known.
    """
    ops, modules = host_ops(ops), MODULES.frame()
    tree = module_tree(ops, modules)
    device = module_tree(ops.assign(self_time_us=ops[SELF_DEVICE_US].fillna(0.0)), modules)
    is_known = bool(ops[SELF_DEVICE_US].notna().any())
    step_us = float(ops[SELF_US].sum())
    columns = {
        "calls": tree["ops"],
        SELF_US: tree[SELF_US],
        TOTAL_US: tree["self_time_below_us"],
        "total_fraction": tree["self_time_below_us"] / step_us if step_us else 0.0,
        SELF_DEVICE_US: device[SELF_US] if is_known else np.nan,
        TOTAL_DEVICE_US: device["self_time_below_us"] if is_known else np.nan,
    }
    return tree[["model", "module", "depth"]].assign(**columns)


def time_totals(ops: pd.DataFrame, names: list[str]) -> pd.DataFrame:
    """Returns per group of ops with the same `names`, most self time first.

    Columns after the names: calls, self_time_us, self_fraction (of the self time of all ops given), total_time_us,
    total_fraction (of the same), self_device_time_us, total_device_time_us (null where no kernel is known). Totals
    count an op inside another one of its group only once, as key_averages() of torch.profiler should.
    """
    ops = host_ops(ops)
    groups = ops.groupby(names, dropna=False, sort=False)
    is_outer = ~_is_inside_own_group(ops, np.asarray(groups.ngroup(), np.int64))
    outer = ops.assign(**{name: ops[name].where(is_outer) for name in (TOTAL_US, TOTAL_DEVICE_US)})
    groups = outer.groupby(names, dropna=False, sort=False)
    sums = groups[[SELF_US, TOTAL_US]].sum()
    sums.insert(0, "calls", groups.size())
    sums.insert(2, "self_fraction", _fractions(sums[SELF_US]))
    sums["total_fraction"] = _fractions(sums[TOTAL_US], float(sums[SELF_US].sum()))
    # Null plus null is null: no kernel is known.
    sums = sums.join(groups[[SELF_DEVICE_US, TOTAL_DEVICE_US]].sum(min_count=1))
    return sums.reset_index().sort_values(SELF_US, ascending=False, kind="stable", ignore_index=True)


def self_totals(ops: pd.DataFrame, names: list[str]) -> pd.DataFrame:
    """Returns what `time_totals` gives without the times of nested calls, in a fraction of its time.

    Columns after the names: calls, self_time_us, self_fraction, self_device_time_us.
    """
    groups = host_ops(ops).groupby(names, dropna=False, sort=False)
    sums = groups[[SELF_US]].sum()
    sums.insert(0, "calls", groups.size())
    sums["self_fraction"] = _fractions(sums[SELF_US])
    sums[SELF_DEVICE_US] = groups[SELF_DEVICE_US].sum(min_count=1)
    return sums.reset_index().sort_values(SELF_US, ascending=False, kind="stable", ignore_index=True)


def _is_inside_own_group(ops: pd.DataFrame, group: Ints) -> npt.NDArray[np.bool_]:
    """Returns whether an op is called, at whatever depth, by one of its own group; looks at these rows only."""
    parent = parent_rows(ops)
    is_inside = np.zeros(len(ops), bool)
    at = np.flatnonzero(parent >= 0)
    above = parent[at]
    while len(at):
        is_same = group[above] == group[at]
        is_inside[at[is_same]] = True
        above = parent[above]
        goes_on = ~is_same & (above >= 0)
        at, above = at[goes_on], above[goes_on]
    return is_inside


def parent_rows(ops: pd.DataFrame) -> Ints:
    """Returns row of each op's parent; -1 at the top and where the parent is not among the rows."""
    ids = ops["op_id"].to_numpy(np.int64)
    parent = ops["parent_id"].to_numpy(np.int64, na_value=-1)
    row = np.searchsorted(ids[:-1], parent)  # the last row is behind all others: what is not found points there
    return np.where(ids[row] == parent, row, -1)


def _fractions(times: pd.Series, whole: float | None = None) -> pd.Series:
    whole = float(times.sum()) if whole is None else whole
    return times / whole if whole else times * 0.0


def slowest_groups(ops: pd.DataFrame, names: list[str], count: int) -> pd.DataFrame:
    """Returns the `count` slowest of `self_totals(ops, names)`, with `op_id`: the call of each with most self time."""
    totals, rows = self_totals(ops, names).head(count), host_ops(ops)
    groups = rows.fillna({SELF_US: 0.0}).groupby(names, dropna=False, sort=False)[SELF_US]
    slowest = rows.loc[groups.idxmax(), [*names, "op_id"]]
    return totals.merge(slowest, on=names, how="left")
