"""Rows of the module tree for a front end."""

from typing import Any

import pandas as pd

from nbkit.views.summary import units
from nbkit.views.summary.names import ROOT, shown

Row = list[Any]


def module_rows(tree: pd.DataFrame, total_us: float) -> list[Row]:
    """Per module of a `module_tree`: model, module, own name, type, depth, has_children, then totals with all below.

    Those are the number of ops, the self time, and its fraction of `total_us`.
    """
    names = ["model", "module", "type", "depth", "has_children", "ops_below", "self_time_below_us"]
    columns = [tree[name].astype(object).where(tree[name].notna(), None).tolist() for name in names]
    return [
        [model, module, own_name(model, module), kind and shown(kind), *place, *totals(count, time_us, total_us)]
        for model, module, kind, *place, count, time_us in zip(*columns, strict=True)
    ]


def totals(count: int, time_us: float, total_us: float) -> Row:
    """Number of ops, self time, and its fraction of all self time, for the eye."""
    return [units.count(count), units.duration(time_us), round(time_us / (total_us or 1.0), 4)]


def own_name(model: str, module: str) -> str:
    """The last part of a module's path, for the eye."""
    return shown(module.rpartition(".")[2] or model or ROOT)
