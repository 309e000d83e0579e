"""The tables of the operator tools: which ops ran otherwise, and what a cast would cost each."""

import pandas as pd

from nbkit.schema import CASTS, REPLACED
from nbkit.trace.trace import Trace
from nbkit.views.sections.section import Column, Section, and_more, columns
from nbkit.views.summary.names import shown_module


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
    kinds = (
        *columns("op, module, dtype"),
        Column("loss change", "number"),
        *columns("error, own error", "number"),
        *columns("overflow, underflow, equal values", "fraction"),
    )
    rows = [_cast_row(row) for _, row in worst.head(count).iterrows()]
    return [Section("What the cast costs most", kinds, rows, and_more(len(worst), count))]


def _worst_first(casts: pd.DataFrame) -> pd.DataFrame:
    by = pd.DataFrame({"loss": casts["loss_change"].abs(), "error": casts["error"] - casts["own_error"]})
    return casts.loc[by.sort_values(["loss", "error"], ascending=False, kind="stable").index]


def _cast_row(row: pd.Series) -> list[object]:
    dtype = row["dtype"] if pd.isna(row["scaling"]) else f"{row['dtype']}, scale: {row['scaling']}"
    module = shown_module(None, row["module"], with_model=False)
    names = ("loss_change", "error", "own_error", "overflow_fraction", "underflow_fraction", "collapsed_fraction")
    return [row["op"], module, dtype, *(row[name] for name in names)]
