"""Collects the detail of one op of one rank by SQL: its row, its tensors, and the ops around it that its row names."""

from typing import Any

import pandas as pd

from nbkit.trace.job.job import Job
from nbkit.units import is_null
from nbkit.views.op_table.detail import MAX_LINKS, MAX_NAME, MAX_TENSORS, MAX_TEXT, TENSOR_COLUMNS
from nbkit.views.tables.raw import raw

# What it takes the whole step to know, which trace.rank(N) has.
OF_THE_STEP = ("producers", "consumers")


def detail(job: Job, rank: int, op_id: int, row_number: int) -> dict[str, Any]:
    """Returns what the detail pane shows of an op, as raw JSON data; links are numbers of rows of the table."""
    row = job.sql("SELECT * FROM ops WHERE rank = ? AND op_id = ?", [rank, op_id]).iloc[0]
    links = {
        "called_by": _linked(job, rank, "op_id = ?", row["parent_id"]),
        "calls": _linked(job, rank, "parent_id = ?", op_id),
        **{name: {"links": [], "total": 0} for name in OF_THE_STEP},
        "forward": _linked(job, rank, "op_id = ?", row["forward_op_id"]),
        "backward": _linked(job, rank, "forward_op_id = ?", op_id),
    }
    return {
        "op_id": row_number,
        "op": raw(f"{row['op']} (op {op_id} of rank {rank})", MAX_NAME),
        "fields": {str(name): raw(value, MAX_TEXT) for name, value in row.items()},
        "source_text": None,
        "class": None,
        "tensors": _tensors(job, rank, op_id),
        "links": links,
    }


def _linked(job: Job, rank: int, condition: str, value: object) -> dict[str, Any]:
    if is_null(value):
        return {"links": [], "total": 0}
    query = f"SELECT op_id, op, count(*) OVER () AS total FROM ops WHERE rank = ? AND {condition} LIMIT {MAX_LINKS}"
    found = job.sql(query, [rank, int(value)])  # type: ignore[call-overload]
    first = job.first_rows[rank]
    pairs = zip(found["op_id"].tolist(), found["op"].tolist(), strict=True)
    total = int(found["total"].iloc[0]) if len(found) else 0
    return {"links": [[first + op_id, raw(op)] for op_id, op in pairs], "total": total}


def _tensors(job: Job, rank: int, op_id: int) -> dict[str, Any]:
    if rank not in job.files.get("tensors", {}):
        return {"columns": [*TENSOR_COLUMNS], "rows": [], "total": 0}
    found: pd.DataFrame = job.sql("SELECT * FROM tensors WHERE rank = ? AND op_id = ?", [rank, op_id])
    cells = [[raw(value, MAX_TEXT) for value in found.head(MAX_TENSORS)[name]] for name in TENSOR_COLUMNS]
    return {"columns": [*TENSOR_COLUMNS], "rows": [list(row) for row in zip(*cells, strict=True)], "total": len(found)}
