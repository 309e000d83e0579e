"""The op table of a report: live, from one packed block that needs no kernel, and as tables of single calls."""

from dataclasses import replace
from typing import Any

import numpy as np

from nbkit.analysis.query.encoded import Columns
from nbkit.trace.trace import Trace
from nbkit.views.op_table.calls import first_calls_table, slowest_calls_table
from nbkit.views.op_table.detail import MAX_LINKS, MAX_TENSORS
from nbkit.views.op_table.report_tensors import tensor_data
from nbkit.views.op_table.source import OpSource
from nbkit.views.op_table.time_columns import MADE
from nbkit.views.panels.pack import EXACT, Column, Ints, numbers, pack, rows_up, scaled, texts
from nbkit.views.panels.panel import Contents, Panel
from nbkit.views.panels.rounded import PER_US, rounded
from nbkit.views.sections.cost import costliest_calls
from nbkit.views.tables.source import TableSource

TIMES = ("start_us", "total_time_us", "self_time_us")
# Ids of other ops, which are about as far away in each repeat of a step.
OP_IDS = ("parent_id", "forward_op_id")
MOST_SAMPLES = 300_000
CALLS = 50


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


def pack_times(ops: Columns) -> dict[str, Column]:
    """Returns the columns of `ops` that are times, by name.

    Where start, total and self time are known of every op they are `gap` (start after the end of the op before it
    inside the same parent, or after the start of the parent), self time, and `rest` (total time less self time and the
    total times of the children), nearly always 0.
    """
    known = {name: numbers(values, PER_US) for name, values in ops.numbers.items() if name.endswith("_us")}
    if not all((np.abs(ops.numbers[name]) * PER_US < EXACT / 1e3).all() for name in TIMES):
        return known
    start, total, own = (np.rint(ops.numbers[name] * PER_US).astype(np.int64) for name in TIMES)
    parent = ops.numbers["parent_id"]
    # A parent that comes later is not known yet when the page makes the times of the rows in order.
    holder = np.where(parent < np.arange(len(parent)), parent, -1).astype(np.int64)
    gap, rest = start - _expected(start, total, holder), total - own - _inside(ops, total, holder)
    small = {"gap": gap, "self_time_us": own, "rest": rest}
    packed = {name: scaled(values, PER_US) for name, values in small.items()}
    return {**{name: column for name, column in known.items() if name not in TIMES}, **packed}


def _expected(start: Ints, total: Ints, holder: Ints) -> Ints:
    """Returns when each op is due: at the end of the op before it in its parent, else at the parent's start, or 0."""
    order = np.argsort(holder, kind="stable")
    before = np.full(len(order), -1, np.int64)
    has_before = holder[order[1:]] == holder[order[:-1]]
    before[order[1:][has_before]] = order[:-1][has_before]
    ends, starts = np.append(start + total, 0), np.append(start, 0)
    due: Ints = np.where(before >= 0, ends[before], starts[holder])
    return due


def _inside(ops: Columns, total: Ints, holder: Ints) -> Ints:
    """Adds up the total times of the children; work on a device runs beside its parent."""
    level = ops.texts["level"]
    is_host = level.where((level.values != "kernel").to_numpy(bool), missing=True)
    inside = np.zeros(len(total), np.int64)
    rows = is_host & (holder >= 0)
    np.add.at(inside, holder[rows], total[rows])
    return inside


def op_panel(contents: Contents) -> Panel:
    """Returns the panel of all ops, which lists the slowest and the first of them where no script runs."""
    trace = contents.trace
    calls = slowest_calls_table(trace, CALLS) + first_calls_table(trace, CALLS)
    return Panel("op_table", "Ops", op_data(trace), f'<div class="nbkit-static">{calls}</div>')


def cost_panel(contents: Contents) -> Panel:
    """Returns the panel of all ops with their costs, which lists the costliest of them where no script runs."""
    calls = costliest_calls(contents.trace, CALLS)
    return Panel("op_table", "Ops", op_data(contents.trace), f'<div class="nbkit-static">{calls}</div>')
