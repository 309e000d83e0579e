"""Tells of calls that raised where a checkpoint computes again which of them did not run."""

from functools import cache

import numpy as np
import pandas as pd
import torch

from nbkit.schema.recording import NOT_RUN, RAISED

# The classes of torch's own autograd nodes by name, and what their attributes of saved tensors begin with.
NODES, SAVED = torch._C._functions, "_raw_saved_"


def without_not_run(ops: pd.DataFrame) -> pd.DataFrame:
    """Returns the frame `ops` in which a call that a checkpoint stopped before it computed is marked so.

    What it took belongs to the call around it: hooks ran there that save tensors, and no kernel.
    """
    is_raised = ops["status"].eq(RAISED).to_numpy(bool, copy=True)
    if not is_raised.any():
        return ops
    parent = ops["parent_id"].to_numpy(np.int64, na_value=-1)
    is_raised[parent[is_raised & (parent >= 0)]] = False  # it came in a call inside
    is_raised &= (ops["phase"].eq("backward") & ops["level"].eq("aten")).to_numpy(bool)
    rows = [row for row in np.flatnonzero(is_raised).tolist() if saves_what_it_takes(ops["op"].iloc[row])]
    self_us, total_us = (ops[name].to_numpy(np.float64, copy=True) for name in ("self_time_us", "total_time_us"))
    np.add.at(self_us, parent[rows][parent[rows] >= 0], self_us[rows][parent[rows] >= 0])
    total_us[rows] -= self_us[rows]
    self_us[rows] = 0.0
    status = ops["status"].copy()
    status.iloc[rows] = NOT_RUN
    return ops.assign(self_time_us=self_us, total_time_us=total_us, status=status)


@cache
def saves_what_it_takes(op: str) -> bool:
    """Returns whether autograd's node of an op is known to hold none of its results.

    Such an op has saved all that it saves before it computes, so that a hook of saved tensors that raises comes before
    its kernel; others save their results last.
    """
    name, _, overload = op.removeprefix("aten.").partition(".")
    packet = getattr(torch.ops.aten, name, None) if op.startswith("aten.") else None
    if packet is None:
        return False
    taken = {argument.name for argument in getattr(packet, overload or packet.overloads()[0])._schema.arguments}
    named = "".join(part.title() for part in name.strip("_").split("_")) + "Backward"
    nodes = [node for number in range(10) if (node := getattr(NODES, f"{named}{number}", None))]
    saved = {each.removeprefix(SAVED) for node in nodes for each in dir(node) if each.startswith(SAVED)}
    return bool(nodes) and saved <= taken
