"""Looks up time, memory and error of the ops that a graph's nodes stand for."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from nbkit.schema import DIFFS, MEMORY, NODES, OPS
from nbkit.trace.trace import Trace

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Value:
    """Says how a number of nodes is called and formatted, and what a part has of all in it: `how` is sum, max, ...

    With `is_inclusive` the number of a part says already what is in it. A scaled one is colored by its size, on both
    sides of `center` if there is one, others by their share.
    """

    label: str
    format: str
    how: str
    is_inclusive: bool = False
    is_scaled: bool = False
    center: float | None = None

    def outline(self, name: str) -> dict[str, Any]:
        looks = {"isInclusive": self.is_inclusive, "isScaled": self.is_scaled, "center": self.center}
        return {"name": name, "label": self.label, "format": self.format, "how": self.how, **looks}


# Parameters of a model, each counted where it first stands.
COUNTED = "counted_params"
PARAMETERS = Value("parameters", "count", "sum", is_inclusive=True)
VALUES = {
    "self_time_us": Value("self time", "duration", "sum"),
    "allocated_bytes": Value("memory allocated", "data_size", "sum"),
    "flops": Value("FLOPs", "flops", "sum"),
    "max_abs_error": Value("max abs error", "error", "max"),
}


def node_values(trace: Trace) -> dict[str, Floats]:
    """Returns for each name of `VALUES` that a node has one number per node, NaN where it is unknown."""
    nodes, ops = trace.frames.get("nodes", NODES.frame()), trace.frames.get("ops", OPS.frame())
    ids = nodes["op_id"].to_numpy(np.int64, na_value=-1)
    is_known = (ids >= 0) & (ids < len(ops))
    known = {}
    for name, of_op in _op_values(trace, ops).items():
        values = np.full(len(nodes), np.nan)
        values[is_known] = of_op[ids[is_known]]
        if not np.isnan(values).all():
            known[name] = values
    return known


def _op_values(trace: Trace, ops: pd.DataFrame) -> dict[str, Floats]:
    """Returns numbers per op, in the order of VALUES."""
    memory, diffs = trace.frames.get("memory", MEMORY.frame()), trace.frames.get("diffs", DIFFS.frame())
    allocated = memory[memory["delta_bytes"] > 0].groupby("op_id")["delta_bytes"].sum()
    errors = diffs.groupby("op_id")["max_abs_error"].max()
    return {
        "self_time_us": ops["self_time_us"].to_numpy(np.float64),
        "allocated_bytes": _by_op(allocated, len(ops)),
        "flops": ops["flops"].to_numpy(np.float64, na_value=np.nan),
        "max_abs_error": _by_op(errors, len(ops)),
    }


def _by_op(values: pd.Series, n_ops: int) -> Floats:
    return values.reindex(range(n_ops)).to_numpy(np.float64, na_value=np.nan)
