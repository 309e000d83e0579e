"""Where the self time went: the slowest ops, kinds of op, modules and phases."""

import pandas as pd

from nbkit.schema import OPS

TOTALS = {"calls": ("op_id", "size"), "self_time_us": ("self_time_us", "sum")}


def computing_ops(ops: pd.DataFrame) -> pd.DataFrame:
    """The ops that do the work: those of level aten where there are any, else all.

    The self time of an API call is Python's, not the op's.
    """
    is_aten = OPS.check(ops)["level"] == "aten"
    return ops[is_aten].reset_index(drop=True) if is_aten.any() else ops


def slowest_calls(ops: pd.DataFrame, count: int = 5) -> pd.DataFrame:
    """The `count` single calls of most self time, slowest first; ties keep call order."""
    order = (-OPS.check(ops)["self_time_us"]).argsort(kind="stable")
    return ops.iloc[order.iloc[:count]].reset_index(drop=True)


def by_op(ops: pd.DataFrame) -> pd.DataFrame:
    """Per kind of op: op, calls, self_time_us, self_fraction of all; slowest first."""
    return _totals(ops, ["op"])


def by_module(ops: pd.DataFrame) -> pd.DataFrame:
    """Per module (not counting what is below it): model, module, calls, self_time_us, self_fraction; slowest first.

    Ops outside any module are one row with null names.
    """
    return _totals(ops, ["model", "module"])


def by_phase(ops: pd.DataFrame) -> pd.DataFrame:
    """Per phase: phase, calls, self_time_us, self_fraction; in the order in which the phases first ran."""
    first = OPS.check(ops)["phase"].drop_duplicates()
    totals = _totals(ops, ["phase"]).set_index("phase")
    return totals.loc[first].reset_index()


def by_module_and_phase(ops: pd.DataFrame) -> pd.DataFrame:
    """Per module and phase: model, module, phase, calls, self_time_us, self_fraction; slowest first."""
    return _totals(ops, ["model", "module", "phase"])


def _totals(ops: pd.DataFrame, names: list[str]) -> pd.DataFrame:
    groups = OPS.check(ops).groupby(names, dropna=False, sort=False, as_index=False)
    totals = groups.agg(**TOTALS)
    total_us = totals["self_time_us"].sum()
    totals["self_fraction"] = totals["self_time_us"] / total_us if total_us else 0.0
    return totals.sort_values("self_time_us", ascending=False, kind="stable", ignore_index=True)
