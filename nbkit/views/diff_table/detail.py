"""The detail pane of one compared tensor: its figures, plots, worst elements, or why its values are not there."""

from typing import Any

import pandas as pd

from nbkit.analysis.values.difference import worst_elements
from nbkit.numerics.metrics import COUNTS
from nbkit.trace.captured_calls import why_not_captured
from nbkit.trace.captured_values import CapturedResult
from nbkit.trace.trace import Trace
from nbkit.views.diff_table.rows import number
from nbkit.views.plots.difference import difference_plots
from nbkit.views.tables.raw import Cell, raw

WORST = 20
# Columns that the head shows, and one that is no news to a reader.
HEAD = ("op_id", "op", "message_values")
MAX_TEXT = 2001


def diff_detail(trace: Trace, row: int) -> dict[str, Any]:
    """Returns what the detail pane shows of a row of `diffs`, as JSON data."""
    values = trace.diffs.iloc[row]
    op_id = int(values["op_id"])
    captured = captured_result(trace, row)
    return {
        "row": row,
        "op_id": op_id,
        "op": raw(values["op"], MAX_TEXT),
        "fields": _fields(trace, values),
        "why_not": None if captured is not None else _why_not(trace, row),
        "plots": [] if captured is None else difference_plots(captured),
        "worst": None if captured is None else _worst(captured),
    }


def captured_result(trace: Trace, row: int) -> CapturedResult | None:
    """Returns the values of a row of `diffs`; None if they were not captured."""
    values = trace.diffs.iloc[row]
    call = trace.captured.get(int(values["op_id"]))
    return None if call is None else call.result(str(values["role"]), int(values["position"]))


def _fields(trace: Trace, values: "pd.Series[Any]") -> list[list[Cell]]:
    names = [str(name) for name in trace.diffs if name not in HEAD]
    # That there is no NaN and no Inf need not be said four times.
    known = {name: values[name] for name in names if name not in COUNTS or values[name] is pd.NA or values[name]}
    fields = [[name, raw(value, MAX_TEXT)] for name, value in known.items()]
    return [*fields, ["source", raw(trace.ops["source"].iloc[int(values["op_id"])], MAX_TEXT)]]


def _why_not(trace: Trace, row: int) -> str:
    op_id = int(trace.diffs["op_id"].iloc[row])
    if op_id in trace.captured:
        return "The values of this tensor were not captured: others of its op mismatched, and it did not."
    return f"The values of this tensor were not captured: {why_not_captured(trace, op_id)}."


def _worst(captured: CapturedResult) -> dict[str, Any] | None:
    if captured.shape != captured.expected_shape:
        return None
    worst = worst_elements(captured, WORST)
    columns = ["index", "actual", "expected", "abs error", "rel error"]
    values = (worst[name].tolist() for name in ("index", "actual", "expected", "abs_error", "rel_error"))
    rows = [
        [index, _value(actual), _value(expected), number(size), number(share)]
        for index, actual, expected, size, share in zip(*values, strict=True)
    ]
    wrong = f"Worst elements of {len(captured.actual):,}"
    return {"caption": wrong if rows else "Every element is exact.", "columns": columns, "rows": rows}


def _value(value: Any) -> str:
    return str(value) if isinstance(value, int) else f"{value:.9g}"
