"""Packs a trace's columns as one block, from which the op table of a report answers without a kernel."""

from dataclasses import replace
from typing import Any

from nbkit.analysis.query.encoded import Columns
from nbkit.trace.trace import Trace
from nbkit.views.op_table.detail import MAX_LINKS, MAX_TENSORS
from nbkit.views.op_table.report_tensors import tensor_data
from nbkit.views.op_table.report_times import pack_times
from nbkit.views.op_table.source import OpSource
from nbkit.views.op_table.time_columns import MADE
from nbkit.views.panels.pack import numbers, pack, rows_up, texts
from nbkit.views.panels.rounded import rounded
from nbkit.views.tables.source import TableSource

# Ids of other ops, which are about as far away in each repeat of a step.
OP_IDS = ("parent_id", "forward_op_id")
MOST_SAMPLES = 300_000


def op_data(trace: Trace) -> bytes:
    """Packs the block of one trace that widgets/src/report/answers/op_answers.js answers from.

    Times are kept to the nanosecond, statistics to the four digits that are shown.
    """
    # The times of each run are much to carry along.
    has_runs = len(trace.frames.get("samples", ())) <= MOST_SAMPLES
    frames = {name: frame for name, frame in trace.frames.items() if name != "samples" or has_runs}
    source = OpSource(rounded(Trace(frames, trace.meta, trace.captured)))
    return pack(
        {
            **op_columns(source.columns),
            "overview": source.overview(),
            "columns": source.shown_columns,
            "modules": all_modules(source),
            "detail": {"links": MAX_LINKS, "tensors": MAX_TENSORS},
            "tensors": tensor_data(source.trace.tensors),
        }
    )


def op_columns(ops: Columns) -> dict[str, Any]:
    """Returns how many ops there are, and their columns, which widgets/src/report/columns/op_columns.js reads."""
    return {
        "count": len(ops),
        "texts": {name: texts(column) for name, column in ops.texts.items()},
        "numbers": _numbers(ops),
    }


def all_modules(source: TableSource) -> dict[str, Any]:
    """Returns the module tree as the source of a table answers it, in one page."""
    rows: list[Any] = []
    answer = source.answer({"kind": "modules"})
    while len(rows) < answer["total"]:
        rows += answer["rows"]
        answer = source.answer({"kind": "modules", "offset": len(rows)})
    return {**{name: answer[name] for name in ("total", "outside", "amount")}, "offset": 0, "rows": rows}


def _numbers(ops: Columns) -> dict[str, Any]:
    """Returns the columns of numbers in the order of the schema, times last, without the op's id, which is its row.

    Those of MADE the page makes of the others.
    """
    ops = replace(ops, numbers={name: values for name, values in ops.numbers.items() if name not in MADE})
    columns = ops.numbers
    plain = {name: numbers(values) for name, values in columns.items() if name not in ("op_id", *OP_IDS)}
    ids = {name: rows_up(columns[name]) for name in OP_IDS if name in columns}
    return {**ids, **{name: plain[name] for name in plain if not name.endswith("_us")}, **pack_times(ops)}
