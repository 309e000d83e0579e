"""Adds the costs of ops up by module."""

import numpy as np
import pandas as pd

from nbkit.schema import MODULE_COSTS

SUMS = ("forward_flops", "backward_flops", "elementwise_flops", "moved_bytes", "saved_bytes")
SAME = ("model", "module", "type", "depth", "calls", "params", "param_bytes")


def module_costs(modules: pd.DataFrame, costs: pd.DataFrame, saved: pd.DataFrame) -> pd.DataFrame:
    """Returns the frame `module_costs`: for each module the sums over its ops and those of all modules in it.

    Ops without a rule count nothing here; `costs` names them. What checkpointing computes again runs in the backward
    pass and counts there.
    """
    paths = list(zip(modules["model"], modules["module"], strict=True))
    rows = {path: number for number, path in enumerate(paths)}
    totals = np.zeros((len(paths), len(SUMS)), np.int64)
    own = _own_sums(costs, saved)
    for (model, module), sums in zip(own.index, own.to_numpy(), strict=True):
        for path in _with_parents(module):
            if (row := rows.get((model, path))) is not None:
                totals[row] += sums
    columns = dict(zip(SUMS, totals.T, strict=True))
    return MODULE_COSTS.frame({**{name: modules[name].array for name in SAME}, **columns})


def _own_sums(costs: pd.DataFrame, saved: pd.DataFrame) -> pd.DataFrame:
    """Returns the sums of each module's own ops, by (model, module)."""
    is_backward = (costs["phase"] == "backward").to_numpy(bool)
    flops = costs["flops"].fillna(0).to_numpy(np.int64)
    new = saved.groupby("saver_op_id")["new_bytes"].sum()
    own = pd.DataFrame(
        {
            "model": costs["model"],
            "module": costs["module"],
            "forward_flops": np.where(is_backward, 0, flops),
            "backward_flops": np.where(is_backward, flops, 0),
            "elementwise_flops": costs["elementwise_flops"].fillna(0).to_numpy(np.int64),
            "moved_bytes": costs["read_bytes"] + costs["written_bytes"],
            "saved_bytes": costs["op_id"].map(new).fillna(0).to_numpy(np.int64),
        }
    )
    return own[costs["module"].notna()].groupby(["model", "module"]).sum()


def _with_parents(module: str) -> list[str]:
    parts = module.split(".") if module else []
    return [".".join(parts[:length]) for length in range(len(parts) + 1)]
