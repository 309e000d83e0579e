"""What is told of the operator tools in words and tables: what ran otherwise, and what came of it."""

from collections.abc import Iterator, Mapping
from math import isfinite
from typing import Any

import pandas as pd

from nbkit import units
from nbkit.schema import CASTS, REPLACED, STABILITY
from nbkit.trace.trace import Trace
from nbkit.views.sections.section import Section, and_more, columns, rows_of
from nbkit.views.statements.statement import Statement, Words, no_fault, op_link
from nbkit.views.summary.names import OUTSIDE, shown, shown_module

# Beyond, an op's own error says that nothing of its result is left.
NOTHING_LEFT = 0.5
SCALES = {"none": "no scale", "tensor": "scale per tensor", "block": "scale per block"}


def bisection_statements(trace: Trace) -> list[Statement]:
    """Says what the trials came to."""
    return [Statement("", ((shown(str(trace.meta["verdict"]), 500),),))] if trace.meta.get("verdict") else []


def operator_statements(trace: Trace) -> list[Statement]:
    """Says what ran otherwise, and what a cast would cost."""
    return [Statement("What this run tells", (*_replaced(trace), *_casts(trace)), is_first=True)]


def _replaced(trace: Trace) -> Iterator[Words]:
    replaced = trace.frames.get("replaced", REPLACED.frame())
    if not len(replaced):
        return
    ran = ", ".join(map(str, replaced["ran"].unique()))
    where = "on the CPU" if ran == "cpu" else f"in {shown(ran)}"
    calls, ops = units.counted(len(replaced), "call"), units.counted(replaced["op"].nunique(), "op")
    noted = int(replaced["message"].notna().sum())
    more = f"; {units.counted(noted, 'call')} otherwise than in their dtype, see trace.replaced" if noted else ""
    yield (f"{calls} of {ops} ran {where}{more}.",)


def _casts(trace: Trace) -> Iterator[Words]:
    casts = trace.frames.get("casts", CASTS.frame())
    casts = casts[casts["message"].isna()]
    for dtype, of in casts.groupby("dtype", sort=False):
        count = len(of.drop_duplicates(["op_id", "position"]))
        yield from _worst(of, f"Of {units.counted(count, 'result')} computed in {shown(str(dtype))} as well, that of ")
        yield from _lost(of)


def _worst(casts: pd.DataFrame, which: str) -> Iterator[Words]:
    """Names the call that the loss would feel most, or, without a backward pass, the one with the largest error."""
    effects = casts["loss_change"].abs()
    if effects.max() > 0:
        worst = casts.iloc[int(effects.fillna(0).to_numpy().argmax())]
        effect = f" would change the loss most, by {units.general(worst['loss_change'], 3)}."
    else:
        worst = casts.iloc[int(casts["error"].to_numpy().argmax())]
        effect = f" has the largest error, {units.general(worst['error'], 3)} of its result."
    module = worst["module"]
    where = f" in {shown_module(None, module)}" if isinstance(module, str) else f" {OUTSIDE}"
    yield which, op_link(shown(worst["op"]), int(worst["op_id"])), f"{where}{effect}"


def _lost(casts: pd.DataFrame) -> Iterator[Words]:
    overflow = casts[casts["overflow_fraction"] > 0]
    gone = casts[(casts["error"] > NOTHING_LEFT) & (casts["own_error"] <= NOTHING_LEFT)]
    for rows, text in (
        (overflow, "has numbers that are too large for it"),
        (gone, "keeps less than half of its result"),
    ):
        if not len(rows):
            continue
        calls = rows["op_id"].nunique()
        first = op_link(shown(rows["op"].iloc[0]), int(rows["op_id"].iloc[0]))
        if calls == 1:
            yield first, f" {text}."
        else:
            yield f"{units.counted(calls, 'call')}, first ", first, f": each {text}."


def stability_statements(trace: Trace) -> list[Statement] | None:
    """Says how many calls ran again; those that differ are findings."""
    stability = STABILITY.check(trace.frames.get("stability", STABILITY.frame()))
    if not len(stability):
        return None
    calls = units.counted(len(stability), "call")
    differ = int((stability["run_to_run"] == "differs").sum())
    if not differ:
        return no_fault(f"{calls} run again: each gave the same bits from the same inputs.{_other_bits(stability)}")
    return no_fault(f"{units.count(differ)} of {calls} gave other bits from the same inputs.")


def _other_bits(stability: pd.DataFrame) -> str:
    """Says how far results are off in another batch, with other threads or strides, which is rounding."""
    rows = stability[(stability["max_ulp"] > 0) & stability["beyond_rounding"].isna()]
    if rows.empty:
        return ""
    worst = rows.iloc[int(rows["max_difference_fraction"].fillna(-1).to_numpy().argmax())]
    far = worst["max_difference_fraction"]
    by = "" if not isfinite(far) else f", by up to {far:.2g} of the largest element ({shown(str(worst['op']))})"
    return f" With another batch, other threads or strides the bits of {units.counted(len(rows), 'call')} change{by}."


def replaced_sections(trace: Trace, count: int) -> list[Section]:
    """Returns the ops whose calls did not run as they would have, most calls first; none for other traces."""
    replaced = trace.frames.get("replaced", REPLACED.frame())
    if not len(replaced):
        return []
    grouped = replaced.groupby(["op", "ran"], sort=False)
    totals = grouped.agg(calls=("op_id", "size"), modules=("module", "nunique"), note=("message", "first"))
    totals = totals.reset_index().sort_values("calls", ascending=False, kind="stable")
    kinds = columns("op, ran in, calls: count, modules: count, note: sentence")
    rows = rows_of(totals.head(count), "op, ran, calls, modules, note")
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
    kinds = [
        *columns("op, module, ran in" if several else "op, module"),
        *columns("loss change: number, error: number, overflow: fraction, underflow: fraction"),
    ]
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
