"""The tables of the operator tools: which ops ran otherwise, and what a cast would cost each."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from nbkit.schema import CASTS, REPLACED
from nbkit.trace.trace import Trace
from nbkit.views.sections.section import Column, Section, and_more, columns
from nbkit.views.summary.names import shown_module

SCALES = {"none": "no scale", "tensor": "scale per tensor", "block": "scale per block"}


def replaced_sections(trace: Trace, count: int) -> list[Section]:
    """Returns the ops whose calls did not run as they would have, most calls first; none for other traces."""
    replaced = trace.frames.get("replaced", REPLACED.frame())
    if not len(replaced):
        return []
    grouped = replaced.groupby(["op", "ran"], sort=False)
    totals = grouped.agg(calls=("op_id", "size"), modules=("module", "nunique"), note=("message", "first"))
    totals = totals.reset_index().sort_values("calls", ascending=False, kind="stable")
    kinds = (*columns("op, ran in"), *columns("calls, modules", "count"), Column("note", "sentence"))
    rows = totals[["op", "ran", "calls", "modules", "note"]].head(count).to_numpy(object).tolist()
    return [Section("Replaced ops", kinds, rows, and_more(len(totals), count))]


def cast_sections(trace: Trace, count: int) -> list[Section]:
    """Returns the calls that a cast would hurt most: by what it does to the loss, else by their own error."""
    casts = trace.frames.get("casts", CASTS.frame())
    casts = casts[casts["message"].isna()]
    if not len(casts):
        return []
    worst = _worst_first(casts)
    dtypes = [_dtype(row) for _, row in casts.drop_duplicates(["dtype", "scaling"]).iterrows()]
    several = len(dtypes) > 1
    kinds = (
        *columns("op, module, ran in" if several else "op, module"),
        *columns("loss change, error", "number"),
        *columns("overflow, underflow", "fraction"),
    )
    rows = [[*row[:2], *row[2 if several else 3 :]] for row in map(_cast_row, worst.head(count).to_dict("records"))]
    title = f"What {'a narrower dtype' if several else dtypes[0]} costs most"
    return [Section(title, kinds, rows, and_more(len(worst), count))]


def _worst_first(casts: pd.DataFrame) -> pd.DataFrame:
    by = pd.DataFrame({"loss": casts["loss_change"].abs(), "error": casts["error"] - casts["own_error"]})
    return casts.loc[by.sort_values(["loss", "error"], ascending=False, kind="stable").index]


def _cast_row(row: Mapping[Any, Any]) -> list[object]:
    names = ("loss_change", "error", "overflow_fraction", "underflow_fraction")
    return [row["op"], shown_module(None, row["module"]), _dtype(row), *(row[name] for name in names)]


def _dtype(row: Mapping[Any, Any] | pd.Series) -> str:
    return str(row["dtype"]) if pd.isna(row["scaling"]) else f"{row['dtype']}, {SCALES[row['scaling']]}"
