"""Joins what is known of each op's cost: FLOPs by phase, bytes, predicted time, parameters of its module."""

import numpy as np
import numpy.typing as npt
import pandas as pd

from nbkit.errors import OptionError
from nbkit.schema import COSTS, MODULE_COSTS, SAVED
from nbkit.trace.once import once_per_view
from nbkit.trace.trace import Trace

SUMS = ("flops", "forward_flops", "backward_flops", "moved_bytes", "saved_bytes", "params", "time_us")
Floats = npt.NDArray[np.float64]


def has_costs(trace: Trace) -> bool:
    """Tells whether a trace says what its step costs."""
    return len(trace.frames.get("costs", ())) > 0


def has_whole_costs(trace: Trace) -> bool:
    """Tells whether a trace says what its whole step costs: it did not stop early."""
    return has_costs(trace) and trace.complete


def has_times(trace: Trace) -> bool:
    """Tells whether a trace says how long each op would take, on a device that was given."""
    costs = trace.frames.get("costs", COSTS.frame())
    return bool(COSTS.check(costs)["time_us"].notna().any())


def costs_of(trace: Trace) -> pd.DataFrame:
    """Returns the frame `costs` of a trace. Raises OptionError if it has none."""
    if "costs" not in trace.frames:
        raise OptionError(f"{trace!r} has no costs; give a trace of nbkit.opcost().")
    return COSTS.check(trace.frames["costs"])


@once_per_view
def op_totals(trace: Trace) -> pd.DataFrame:
    """Returns a row per row of `costs`: op_id, op, model, module, phase, dtype, SUMS and elementwise_flops.

    FLOPs are null where no rule knows them, `time_us` where no device was given. `saved_bytes` is what the op saves for
    the backward pass that nothing has saved before. `params` are the parameter elements of the op's module without
    those of modules in it, at the first op of the module that moves data, so that their sum over a module is right.
    Raises OptionError if the trace has no costs.
    """
    costs = costs_of(trace)
    flops = costs["flops"].to_numpy(np.float64, na_value=np.nan)
    totals = costs[["op_id", "op", "model", "module", "phase", "dtype"]].assign(flops=flops)
    for phase in ("forward", "backward"):
        totals[f"{phase}_flops"] = np.where((costs["phase"] == phase).to_numpy(bool), flops, flops * 0.0)
    totals["moved_bytes"] = (costs["read_bytes"] + costs["written_bytes"]).to_numpy(np.float64)
    totals["saved_bytes"] = _saved(costs, SAVED.check(trace.frames.get("saved", SAVED.frame())))
    modules = MODULE_COSTS.check(trace.frames.get("module_costs", MODULE_COSTS.frame()))
    totals["params"] = _parameters(costs, modules)
    totals["elementwise_flops"] = costs["elementwise_flops"].to_numpy(np.float64, na_value=np.nan)
    totals["time_us"] = costs["time_us"].to_numpy(np.float64)
    return totals


def _saved(costs: pd.DataFrame, saved: pd.DataFrame) -> Floats:
    known = saved[saved["saver_op_id"].notna()]
    ids = costs["op_id"].to_numpy()
    by_op = np.bincount(known["saver_op_id"].to_numpy(np.int64), known["new_bytes"], ids.max(initial=-1) + 1)
    # A call may have several rows, of which the first one has what it saves.
    return np.where(costs["op_id"].duplicated().to_numpy(bool), 0.0, by_op[ids])


def _parameters(costs: pd.DataFrame, modules: pd.DataFrame) -> Floats:
    params = dict(zip(zip(modules["model"], modules["module"], strict=True), modules["params"].tolist(), strict=True))
    own = dict(params)
    for (model, module), count in params.items():
        parent = (model, module.rpartition(".")[0])
        if module and parent in own:
            own[parent] -= count
    places = costs[["model", "module"]]
    is_still = (costs["read_bytes"] + costs["written_bytes"]).to_numpy() == 0
    # What moves data comes first, then in call order.
    order = np.argsort(is_still, kind="stable")
    first = order[~places.iloc[order].duplicated().to_numpy(bool)]
    values = np.zeros(len(costs))
    # Modules that share a parameter have it once, in their parent alone.
    values[first] = [max(own.get(place, 0), 0) for place in places.iloc[first].itertuples(index=False, name=None)]
    return values
