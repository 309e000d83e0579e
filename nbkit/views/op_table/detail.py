"""The detail pane of one op: its fields, tensors, and the ops it is linked to."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from nbkit.analysis.graph import dataflow
from nbkit.analysis.graph.dataflow import Ids
from nbkit.trace.trace import Trace
from nbkit.views.summary import units
from nbkit.views.summary.names import ROOT, shown

MAX_LINKS = 50
MAX_TENSORS = 60
STATISTICS = ("mean", "std", "min", "max", "norm")
TENSOR_TEXTS = ("role", "name", "dtype", "shape", "stride", "device")
# Label, column of `ops` and look of each field; the class is that of the module.
FIELDS = (
    ("module", "module", "module"),
    ("model", "model", "text"),
    ("class", "class", "class"),
    ("call of the module", "module_call", "whole"),
    ("level", "level", "text"),
    ("phase", "phase", "text"),
    ("step", "step", "whole"),
    ("self time", "self_time_us", "time"),
    ("total time", "total_time_us", "time"),
    ("start", "start_us", "time"),
    ("self device time", "self_device_time_us", "known time"),
    ("total device time", "total_device_time_us", "known time"),
    ("FLOPs", "flops", "flops"),
    ("bytes moved", "size_bytes", "size"),
    ("process group", "group", "text"),
    ("input shapes", "input_shapes", "text"),
    ("device", "device", "text"),
    ("stream", "stream", "whole"),
    ("thread", "thread", "whole"),
    ("source", "source", "text"),
)


def detail(trace: Trace, op_id: int) -> dict[str, Any]:
    """What the detail pane shows of an op, as JSON data: texts, tables and links; long lists cut, with their length.

    An API call has no tensors of its own: those of the ops below it are shown, and the links into and out of them.
    """
    group = dataflow.with_children(trace.ops, op_id)
    into = dataflow.producers(trace.tensors, group)
    out_of = dataflow.consumers(trace.tensors, group)
    parent = trace.ops["parent_id"].iloc[op_id : op_id + 1].dropna().to_numpy(np.int64)
    return {
        "op_id": op_id,
        "op": shown(str(trace.ops["op"].iloc[op_id]), 2000),
        "fields": _fields(trace, op_id),
        "tensors": _tensor_table(trace.tensors, group),
        "links": [
            _link_list(trace.ops, "Called by", parent),
            _link_list(trace.ops, "Calls", group[group != op_id]),
            _link_list(trace.ops, "Inputs come from", into["producer_id"].to_numpy(np.int64)),
            _link_list(trace.ops, "Outputs go to", out_of["op_id"].to_numpy(np.int64)),
            _link_list(trace.ops, "Gradient of", dataflow.forward_ops(trace.ops, group)),
            _link_list(trace.ops, "Gradient computed by", dataflow.backward_ops(trace.ops, group)),
        ],
    }


def _fields(trace: Trace, op_id: int) -> list[list[str | None]]:
    row = trace.ops.iloc[op_id]
    own = {"module": ROOT if row["module"] == "" else _text(row["module"])}
    own["class"] = _module_type(trace, row["model"], row["module"])
    return [[label, own[column] if column in own else LOOKS[look](row[column])] for label, column, look in FIELDS]


def _module_type(trace: Trace, model: object, module: object) -> str | None:
    modules = trace.frames.get("modules")
    if modules is None or not isinstance(module, str):
        return None
    found = modules.loc[(modules["module"] == module) & (modules["model"] == model), "type"].dropna()
    return shown(str(found.iloc[0])) if len(found) else None


def _tensor_table(tensors: pd.DataFrame, group: Ids) -> dict[str, Any]:
    near = tensors[np.isin(tensors["op_id"].to_numpy(), group)]
    few = near.head(MAX_TENSORS)
    columns: dict[str, list[str | None]] = {"op": [_whole(v) for v in few["op_id"]]} if len(group) > 1 else {}
    columns |= {name: [_text(value) for value in few[name]] for name in TENSOR_TEXTS}
    columns["size"] = [_known(value, units.data_size) for value in few["size_bytes"]]
    columns["grad"] = ["yes" if value else "no" for value in few["requires_grad"]]
    columns["tensor"] = [_whole(value) for value in few["tensor_id"]]
    if few["nan_count"].notna().any():
        statistics = {name: [_statistic(value) for value in few[name]] for name in STATISTICS}
        counts = {
            name: [_whole(v) for v in few[column]] for name, column in (("NaN", "nan_count"), ("Inf", "inf_count"))
        }
        columns = {**columns, **statistics, **counts}
    return {
        "columns": list(columns),
        "rows": [list(row) for row in zip(*columns.values(), strict=True)],
        "total": len(near),
    }


def _link_list(ops: pd.DataFrame, title: str, op_ids: Ids) -> dict[str, Any]:
    """Links to ops, each once, in the order given."""
    different = list(dict.fromkeys(op_ids.tolist()))
    names = ops["op"].iloc[different[:MAX_LINKS]]
    links = [[op_id, shown(str(name))] for op_id, name in zip(different, names, strict=False)]
    return {"title": title, "links": links, "total": len(different)}


def _text(value: object) -> str | None:
    return shown(value, 500) if isinstance(value, str) else None


def _known(value: Any, text_of: Callable[[float], str]) -> str | None:
    return None if units.is_null(value) else text_of(value)


def _whole(value: Any) -> str | None:
    return _known(value, lambda number: str(int(number)))


def _statistic(value: float) -> str | None:
    return _known(value, units.statistic)


LOOKS: dict[str, Callable[[Any], str | None]] = {
    "text": _text,
    "whole": _whole,
    "time": units.duration,
    "known time": lambda value: _known(value, units.duration),
    "flops": lambda value: _known(value, units.flops),
    "size": lambda value: _known(value, units.data_size),
}
