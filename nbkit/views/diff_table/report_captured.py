"""Packs the captured values of a trace for a report: which rows have some, and on demand what is drawn of them."""

from typing import Any

from nbkit.trace.trace import Trace
from nbkit.views.diff_table.detail import captured_result, diff_detail
from nbkit.views.diff_table.source import DiffSource


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
