"""The diff table of a report: live, and as a table of the worst differences."""

from typing import Any

import pandas as pd

from nbkit.numerics.metrics import COUNTS
from nbkit.trace.trace import Trace
from nbkit.views.diff_table.detail import HEAD, captured_result, diff_detail
from nbkit.views.diff_table.source import DiffSource
from nbkit.views.op_table.report_data import all_modules
from nbkit.views.panels.pack import Column, decimals, numbers, pack, steps, texts
from nbkit.views.panels.panel import Contents, Panel
from nbkit.views.panels.rounded import METRIC_DIGITS, rounded
from nbkit.views.sections.diff import worst_section
from nbkit.views.sections.writers import to_html

ROWS = 50


def diff_panel(contents: Contents) -> Panel:
    """Returns the panel of all compared tensors, which shows the worst of them where no script runs."""
    data = diff_data(contents.trace, values=contents.values)
    worst = to_html([worst_section(contents.trace, ROWS)])
    return Panel("diff_table", "Differences, worst first", data, f'<div class="nbkit-static">{worst}</div>')


def diff_data(trace: Trace, *, values: bool) -> bytes:
    """Packs the block of one trace that widgets/src/report/answers/diff_answers.js answers from.

    Metrics are kept to the three digits that are shown. Elements of tensors, and what was drawn of them, are in it only
    with `values`.
    """
    source = DiffSource(rounded(trace))
    diffs = source.trace.diffs
    return pack(
        {
            "count": len(source.columns),
            "overview": source.overview(),
            "columns": source.shown_columns,
            "fields": [name for name in diffs if name not in HEAD],
            "counts": list(COUNTS),
            "modules": all_modules(source),
            "captured": captured_data(source, values=values),
            "texts": {name: texts(column) for name, column in source.columns.texts.items()},
            "numbers": {name: _numbers(source, diffs, name) for name in source.columns.numbers},
        }
    )


def _numbers(source: DiffSource, diffs: pd.DataFrame, name: str) -> Column:
    values = source.columns.numbers[name]
    if name == "op_id":
        return steps(values)
    is_metric = name in diffs and diffs[name].dtype == "float64"
    return decimals(values, METRIC_DIGITS) if is_metric else numbers(values)


def captured_data(source: DiffSource, *, values: bool) -> dict[str, Any]:
    """Returns rows and ops with captured values, what `meta` says of them, and by row plots, worst elements and script.

    Without `values` those are left out. A script whose inputs would need a file beside it is null.
    """
    trace = source.trace
    op_ids = trace.diffs["op_id"]
    rows = [
        row
        for row in op_ids.index[op_ids.isin(list(trace.captured))].tolist()
        if captured_result(trace, row) is not None
    ]
    return {
        "meta": trace.meta.get("captured"),
        "ops": list(trace.captured),
        "rows": rows,
        "values": {str(row): _values(trace, row) for row in rows} if values else {},
    }


def _values(trace: Trace, row: int) -> dict[str, Any]:
    detail = diff_detail(trace, row)
    return {"plots": detail["plots"], "worst": detail["worst"], "script": _script(trace, row)}


def _script(trace: Trace, row: int) -> str | None:
    # torch writes the inputs; a report without values does not ask.
    from nbkit.capture.calls.script import EMBEDDED_BYTES, script_of

    op_id = int(trace.diffs["op_id"].iloc[row])
    size_bytes = sum(len(tensor.data) for tensor in trace.captured[op_id].tensors)
    return script_of(trace, op_id) if size_bytes <= EMBEDDED_BYTES else None
