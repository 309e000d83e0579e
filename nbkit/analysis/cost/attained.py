"""Places the ops of a predicted step below the roofs of its device."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from nbkit.analysis.cost.op_totals import costs_of
from nbkit.analysis.time.roofline import roofline
from nbkit.errors import OptionError
from nbkit.schema import OPS
from nbkit.step.decode import inputs_in
from nbkit.trace.checks import checked_trace
from nbkit.trace.trace import Trace


@dataclass(frozen=True)
class Roofs:
    """Holds the roofs of a device: FLOP/s by dtype, and bytes/s; null where that does not show."""

    flops_per_s: dict[str, float]
    bytes_per_s: float | None


def attained(trace: Trace) -> pd.DataFrame:
    """Returns per op, dtype and size of call what it attains by the predicted times, most time first.

    Columns: op, dtype, bound, calls, time_us (of all calls), flops and moved_bytes (of one call), intensity (FLOPs per
    byte), flops_per_s. Ops that compute nothing or move nothing are left out. After Williams, Waterman and Patterson,
    "Roofline", CACM 52(4), 2009. Raises OptionError if the trace has no predicted times.
    """
    costs = _timed(trace)
    known = costs[(costs["work"] > 0) & (costs["moved_bytes"] > 0) & (costs["time_us"] > 0)]
    by = ["op", "dtype", "bound", "work", "moved_bytes"]
    groups = known.groupby(by, dropna=False, sort=False, as_index=False)
    table = groups.agg(calls=("time_us", "size"), time_us=("time_us", "sum"))
    table = table.sort_values("time_us", ascending=False, kind="stable", ignore_index=True)
    rates = {
        "intensity": table["work"] / table["moved_bytes"],
        "flops_per_s": table["work"] * table["calls"] / table["time_us"] * 1e6,
    }
    return table.rename(columns={"work": "flops"}).assign(**rates)


def roofs(trace: Trace) -> Roofs:
    """Returns the roofs of the device of a trace, for the dtypes of its step. Raises OptionError if it has no times.

    Those of a device that is not known are the rates that the predicted times imply.
    """
    costs = _timed(trace)
    if device := trace.meta.get("cost_device"):
        return _peaks(device, costs["dtype"])
    times = costs["time_us"].where(costs["time_us"] > 0) / 1e6
    compute = (costs["work"] / times)[(costs["bound"] == "compute").to_numpy(bool, na_value=False)]
    memory = (costs["moved_bytes"] / times)[(costs["bound"] == "memory").to_numpy(bool, na_value=False)]
    by_dtype = compute.groupby(costs["dtype"]).max().dropna().sort_values()
    flops_per_s = {str(dtype): float(value) for dtype, value in by_dtype.items()}
    return Roofs(flops_per_s, float(memory.max()) if memory.notna().any() else None)


def _peaks(device: Mapping[str, Any], dtypes: pd.Series) -> Roofs:
    """Returns the peaks of a device in the dtypes of a step."""
    peaks = {str(name): float(value) for name, value in device["flops_per_s"].items()}
    used = {str(name).partition("_")[0] for name in dtypes.dropna().unique()}
    # A device may multiply matrices of float32 in tf32.
    used |= {"tf32"} if "float32" in used else set()
    known = {name: peaks[name] for name in sorted(used & peaks.keys(), key=lambda name: peaks[name])}
    return Roofs(known, float(device["bytes_per_s"]))


def measured(trace: Trace) -> pd.DataFrame:
    """Returns what `attained` does of the measured times of an optime trace with shapes; `bound` is null.

    Calls of unknown FLOPs or bytes are left out.
    """
    ops = OPS.check(trace.frames.get("ops", OPS.frame()))
    table = roofline(ops).dropna(subset=["intensity", "flops_per_second"])
    dtypes = ops.drop_duplicates(["op", "input_shapes"]).set_index(["op", "input_shapes"])["input_dtypes"]
    keys = zip(table["op"], table["input_shapes"], strict=True)
    return pd.DataFrame(
        {
            "op": table["op"],
            "dtype": [next(filter(None, inputs_in(dtypes[key]) or ()), None) for key in keys],
            "bound": None,
            "calls": table["calls"],
            "time_us": table["time_us"],
            "flops": table["flops"] / table["calls"],
            "moved_bytes": table["size_bytes"] / table["calls"],
            "intensity": table["intensity"],
            "flops_per_s": table["flops_per_second"],
        }
    )


def roofs_measured(trace: Trace) -> Roofs:
    """Returns the roofs of the device that the trace was measured on, as nbkit.calibrate() measured it; else none."""
    device = trace.meta.get("measured_device")
    return _peaks(device, measured(trace)["dtype"]) if device else Roofs({}, None)


def _timed(trace: Trace) -> pd.DataFrame:
    """Returns the costs with `work`, all FLOPs of an op as far as they are known, and `moved_bytes`."""
    costs = costs_of(checked_trace(trace))
    if "time_us" not in costs or not costs["time_us"].notna().any():
        raise OptionError(
            f"{trace!r} has no predicted times; give opcost a device, such as nbkit.opcost(device='H100')."
        )
    names = [name for name in ("flops", "elementwise_flops") if name in costs]
    work = sum(costs[name].to_numpy(np.float64, na_value=0.0) for name in names)
    return costs.assign(work=work, moved_bytes=costs["read_bytes"] + costs["written_bytes"])
