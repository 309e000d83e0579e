"""Puts the forward and the backward time of each call of an op side by side, with its API name, inputs and outputs."""

import json

import numpy as np
import numpy.typing as npt
import pandas as pd

from nbkit.analysis.time.times import parent_rows
from nbkit.schema import OPS, TENSORS, TEXT
from nbkit.timeline.names import BACKWARD_CALLS
from nbkit.trace.checks import checked_trace
from nbkit.trace.trace import Trace

Ints = npt.NDArray[np.int64]
PLACES = ("module", "phase", "source")


def op_times(trace: Trace) -> pd.DataFrame:
    """Returns a row per call of an op that the step made, in call order, with the time of its backward pass beside it.

    A row is the outermost call: `torch.nn.functional.linear` where API calls are known (of optrace, of opdoctor, and of
    optime with stacks=True), else `aten.linear.default`. Columns: op_id, op, aten (the aten ops that it called itself,
    each name once), module, phase, source, device, inputs and outputs (`float32[8, 16]`, null where they were not
    recorded: optime records inputs with shapes=True, and no outputs), forward_us, backward_us, forward_device_us and
    backward_device_us (null where no kernel is known).

    forward_us is the total time of the call. backward_us sums the self times of the calls in the autograd nodes that it
    made; null where none is known, as without a backward pass. Ops that Python code calls in the backward pass (a
    checkpoint that computes again, an autograd.Function, a hook) have rows of their own. The times of optime and of
    opdoctor(repeats=) are the step's; those of optrace hold what the recorder takes. Raises OptionError for what is no
    trace.
    """
    ops = OPS.check(checked_trace(trace).ops)
    ops = ops[ops["level"] != "kernel"].reset_index(drop=True)
    top = _outermost(ops)
    forward = _rows(ops, ops["forward_op_id"])
    target = np.where(forward >= 0, top[forward], -1)  # of a backward call: the call that it belongs to
    is_backward, is_called = (ops["phase"] == "backward").to_numpy(), _is_called(ops, top)
    target = np.where(is_backward & ~is_called, target, -1)
    chosen = np.flatnonzero((top == np.arange(len(ops))) & (~is_backward | is_called))
    of_backward = ops.assign(target=target)[target >= 0].groupby("target")
    rows = ops.loc[chosen]
    columns = {
        "op_id": rows["op_id"],
        "op": rows["op"],
        "aten": _aten(ops, top).reindex(chosen),
        **{name: rows[name] for name in PLACES},
        **_tensors(trace, ops, top, chosen),
        "forward_us": rows["total_time_us"],
        "backward_us": of_backward["self_time_us"].sum().reindex(chosen),
        "forward_device_us": rows["total_device_time_us"],
        "backward_device_us": of_backward["self_device_time_us"].sum(min_count=1).reindex(chosen),
    }
    texts = dict.fromkeys(("aten", "device", "inputs", "outputs"), TEXT)
    return pd.DataFrame(columns, index=chosen).astype(texts).reset_index(drop=True)


def _rows(ops: pd.DataFrame, ids: pd.Series) -> Ints:
    """Returns the row of each op_id; -1 for null and for those that are no rows."""
    known = pd.Series(np.arange(len(ops)), index=ops["op_id"].to_numpy())
    return known.reindex(ids.to_numpy(np.int64, na_value=-1)).fillna(-1).to_numpy(np.int64)


def _outermost(ops: pd.DataFrame) -> Ints:
    """Returns for each row the row of the outermost op around it, which may be its own; -1 outside of all."""
    is_op = ops["level"].isin(["api", "aten"]) & ~ops["op"].isin(BACKWARD_CALLS)
    top = [-1] * len(ops)
    for row, (parent, is_one) in enumerate(zip(parent_rows(ops).tolist(), is_op.tolist(), strict=True)):
        top[row] = top[parent] if parent >= 0 and top[parent] >= 0 else row if is_one else -1
    return np.array(top, dtype=np.int64)


def _is_called(ops: pd.DataFrame, top: Ints) -> npt.NDArray[np.bool_]:
    """Returns which rows of the backward pass stand in an op that Python code or a module called."""
    parent = parent_rows(ops)
    level = ops["level"].to_numpy(object)
    is_called = (level == "api") | ((parent >= 0) & (level[parent] == "module"))
    called: npt.NDArray[np.bool_] = (ops["phase"] == "backward").to_numpy() & (top >= 0) & is_called[top]
    return called


def _aten(ops: pd.DataFrame, top: Ints) -> pd.Series:
    """Returns the outermost aten ops of each outermost op, each name once."""
    is_aten, parent = (ops["level"] == "aten").to_numpy(), parent_rows(ops)
    is_outer = is_aten & (top >= 0) & ~((parent >= 0) & is_aten[parent])
    return ops.assign(top=top)[is_outer].drop_duplicates(["top", "op"]).groupby("top")["op"].agg(", ".join)


def _tensors(trace: Trace, ops: pd.DataFrame, top: Ints, chosen: Ints) -> dict[str, pd.Series]:
    """Returns the columns device, inputs and outputs of the chosen rows."""
    known = TENSORS.check(trace.frames.get("tensors", TENSORS.frame()))
    if not len(known):
        first = ops.assign(top=top)[(ops["level"] == "aten") & (top >= 0)].drop_duplicates("top").set_index("top")
        texts = [_recorded(*pair) for pair in zip(first["input_dtypes"], first["input_shapes"], strict=True)]
        none = pd.Series(None, index=chosen, dtype=object)
        told = pd.Series(texts, index=first.index, dtype=object).reindex(chosen)
        return {"device": first["device"].reindex(chosen), "inputs": told, "outputs": none}
    row = _rows(ops, known["op_id"])
    known = known.assign(row=row, top=np.append(top, -1)[row], text=known["dtype"] + known["shape"])
    known = known[known["top"] >= 0]
    own = ["top", "tensor_id"]
    made, read = known[known["role"] == "output"], known[known["role"] == "input"]
    first_made = read.merge(made.groupby(own)["row"].min().rename("made"), "left", on=own)["made"]
    last_read = made.merge(read.groupby(own)["row"].max().rename("read"), "left", on=own)["read"]
    # What one op below hands on to the next is neither.
    inputs = read[~(first_made.to_numpy() < read["row"].to_numpy())].drop_duplicates(own)
    outputs = made[~(last_read.to_numpy() > made["row"].to_numpy())].drop_duplicates(own, keep="last")
    devices = known.drop_duplicates(["top", "device"])
    columns = (("device", devices, "device"), ("inputs", inputs, "text"), ("outputs", outputs, "text"))
    return {name: frame.groupby("top")[column].agg(", ".join).reindex(chosen) for name, frame, column in columns}


def _recorded(dtypes: object, shapes: object) -> str | None:
    if not isinstance(dtypes, str) or not isinstance(shapes, str):
        return None
    pairs = zip(json.loads(dtypes), json.loads(shapes), strict=False)
    return ", ".join(f"{dtype}{shape}" for dtype, shape in pairs if dtype is not None) or None
