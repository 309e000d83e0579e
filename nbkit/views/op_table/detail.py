"""Collects the detail of one op as raw data: its own values, its tensors, and the ops it is linked to."""

from typing import Any

import numpy as np
import pandas as pd

from nbkit.analysis.graph import dataflow
from nbkit.analysis.graph.dataflow import Ids
from nbkit.findings.finding import line_texts
from nbkit.trace.trace import Trace, step_of
from nbkit.units import is_null
from nbkit.views.tables.raw import raw

MAX_LINKS = 50
MAX_TENSORS = 60
MAX_NAME = 2001
MAX_TEXT = 501
TENSOR_TEXTS = ("role", "name", "dtype", "shape", "stride", "device")
TENSOR_COLUMNS = (*TENSOR_TEXTS, "size_bytes", "requires_grad", "tensor_id")
STATISTICS = ("mean", "std", "min", "max", "norm")
COUNTS = ("nan_count", "inf_count")


def detail(trace: Trace, op_id: int) -> dict[str, Any]:
    """Returns what the detail pane shows of an op, as raw JSON data; long lists are cut, with their length.

    An API call has no tensors of its own: those of the ops below it are shown, and the links into and out of them.
    """
    group = dataflow.with_children(trace.ops, op_id)
    row = trace.ops.iloc[op_id]
    if is_null(row["source"]) and not is_null(row["forward_op_id"]):
        row = row.copy()
        row["source"] = trace.ops["source"].iloc[int(row["forward_op_id"])]
    links = {
        "called_by": trace.ops["parent_id"].iloc[op_id : op_id + 1].dropna().to_numpy(np.int64),
        "calls": group[group != op_id],
        "producers": dataflow.producers(step_of(trace), group),
        "consumers": dataflow.consumers(step_of(trace), group),
        "forward": dataflow.forward_ops(trace.ops, group),
        "backward": dataflow.backward_ops(trace.ops, group),
    }
    return {
        "op_id": op_id,
        "op": raw(row["op"], MAX_NAME),
        "fields": {str(name): raw(value, MAX_TEXT) for name, value in row.items()},
        "source_text": raw(line_texts(trace.frames.get("lines")).get(row["source"]), MAX_TEXT),
        "class": raw(_module_type(trace, row["model"], row["module"])),
        "tensors": _tensors(trace.tensors, group),
        "links": {name: _links(trace.ops, op_ids) for name, op_ids in links.items()},
    }


def _module_type(trace: Trace, model: object, module: object) -> object:
    modules = trace.frames.get("modules")
    if modules is None or not isinstance(module, str):
        return None
    types = modules.loc[(modules["module"] == module) & (modules["model"] == model), "type"].dropna()
    return types.iloc[0] if len(types) else None


def _tensors(tensors: pd.DataFrame, group: Ids) -> dict[str, Any]:
    near = tensors[np.isin(tensors["op_id"].to_numpy(), group)]
    few = near.head(MAX_TENSORS)
    columns = [*(["op_id"] if len(group) > 1 else []), *TENSOR_COLUMNS]
    if few["nan_count"].notna().any():
        columns += [*STATISTICS, *COUNTS]
    cells = [[raw(value, MAX_TEXT) for value in few[name]] for name in columns]
    return {"columns": columns, "rows": [list(row) for row in zip(*cells, strict=True)], "total": len(near)}


def _links(ops: pd.DataFrame, op_ids: Ids) -> dict[str, Any]:
    """Returns links to ops, each once, in the order given."""
    different = list(dict.fromkeys(op_ids.tolist()))
    names = ops["op"].iloc[different[:MAX_LINKS]]
    links = [[op_id, raw(name)] for op_id, name in zip(different, names, strict=False)]
    return {"links": links, "total": len(different)}
