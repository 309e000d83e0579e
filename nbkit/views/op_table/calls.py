"""HTML tables of single calls: the first ones and the slowest ones."""

from collections.abc import Iterable

import numpy as np
import pandas as pd

from nbkit import units
from nbkit.analysis.query.encoded import Columns
from nbkit.analysis.query.op_table import encode
from nbkit.analysis.time.times import computing_ops
from nbkit.schema import TENSORS
from nbkit.trace.trace import Trace
from nbkit.views.sections.section import Column, Section
from nbkit.views.sections.writers import to_html
from nbkit.views.summary.names import ROOT, short_paths, shown

COLUMNS = {"op": "op", "self_time_us": "self time", "module": "module", "phase": "phase", "output": "output",
           "source": "source"}  # fmt: skip
KINDS = {"self_time_us": "time", "phase": "phase"}
# What a trace without tensors knows of an op instead of its output.
WITHOUT_TENSORS = {"output": ("input_shapes", "input shapes")}


def first_calls_table(trace: Trace, count: int) -> str:
    """Returns an HTML table of the first calls, without its style."""
    shown_calls = min(count, len(trace.ops))
    return _calls(trace, range(shown_calls), f"First {units.counted(shown_calls, 'call')}")


def slowest_calls_table(trace: Trace, count: int) -> str:
    """Returns an HTML table of the calls with most self time, without its style."""
    self_time_us = trace.ops["self_time_us"].where(trace.ops["op_id"].isin(computing_ops(trace.ops)["op_id"]), -1.0)
    order = (-self_time_us).argsort(kind="stable")[:count]
    return _calls(trace, order.tolist(), "Slowest calls")


def _calls(trace: Trace, op_ids: Iterable[int], title: str) -> str:
    ids = list(op_ids)
    # Only the shown calls are encoded: their tensors and themselves, renumbered from 0.
    few = trace.ops.iloc[ids].assign(op_id=np.arange(len(ids)), parent_id=pd.array([None] * len(ids), dtype="Int64"))
    tensors = trace.frames.get("tensors", TENSORS.frame())
    near = tensors[tensors["op_id"].isin(ids)]
    row_of = {op_id: index for index, op_id in enumerate(ids)}
    near = near.assign(op_id=near["op_id"].map(row_of).astype("int64")).reset_index(drop=True)
    encoded = encode(few.reset_index(drop=True), near)
    renamed = {} if "tensors" in trace.frames else WITHOUT_TENSORS
    columns = dict(renamed.get(name, (name, label)) for name, label in COLUMNS.items())
    kinds = [Column("#", "id"), *(Column(label, KINDS.get(name, "text")) for name, label in columns.items())]
    times = few["self_time_us"].tolist()
    rows = [
        [op_id, *(times[row] if name == "self_time_us" else _text(encoded, row, name) for name in columns)]
        for row, op_id in enumerate(ids)
    ]
    return to_html([Section(title, kinds, rows)])


def _text(ops: Columns, row: int, column: str) -> str | None:
    text = ops.texts[column].text_at(row)
    return ROOT if column == "module" and text == "" else None if text is None else shown(short_paths(text))
