"""Measures what a step costs as a whole, and says by how much two differ."""

import numpy as np
import pandas as pd

from nbkit.capture.cost.storages import GRADIENT, PARAMETER, STATE
from nbkit.schema.cost import DIFFERENCE, STORAGE_KINDS
from nbkit.trace.trace import Trace

SENT = ("all_gather_bytes", "reduce_scatter_bytes", "all_reduce_bytes")


def difference(baseline: Trace, changed: Trace) -> pd.DataFrame:
    """Returns the frame DIFFERENCE of two traces of opcost."""
    before, after = measures(baseline), measures(changed)
    left, right = (np.array([of[name] for name in before], np.int64) for of in (before, after))
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(left != 0, right / left, np.nan)
    return DIFFERENCE.frame(
        {"measure": list(before), "baseline": left, "changed": right, "change": right - left, "ratio": ratio}
    )


def measures(trace: Trace) -> dict[str, int]:
    """Returns the measures of a step by name, in bytes and FLOPs."""
    held = held_at_peak(trace)
    sizes = trace.storages.groupby("kind")["size_bytes"].sum()
    flops = trace.costs["flops"].fillna(0).groupby(trace.costs["phase"] == "backward").sum()
    sent = trace.meta.get("sent_bytes", {})
    return {
        "peak_bytes": sum(held.values()),
        **{f"peak_{kind.replace(' ', '_')}_bytes": held[kind] for kind in STORAGE_KINDS},
        "saved_bytes": int(trace.saved["new_bytes"].sum()),
        **{f"{kind.replace(' ', '_')}_bytes": int(sizes.get(kind, 0)) for kind in (PARAMETER, GRADIENT, STATE)},
        "forward_flops": int(flops.get(False, 0)),
        "backward_flops": int(flops.get(True, 0)),
        "moved_bytes": int(trace.costs["read_bytes"].sum() + trace.costs["written_bytes"].sum()),
        **{name: int(sent.get(name, 0)) for name in SENT},
    }


def peak_bytes(trace: Trace) -> int:
    """Returns the most memory that a step holds at one time, on the device where that is the most."""
    return sum(held_at_peak(trace).values())


def events_of_fullest_device(trace: Trace) -> pd.DataFrame:
    """Returns the events of the memory of the device that holds the most at its peak."""
    memory = trace.memory
    if not len(memory):
        return memory
    fullest = memory["device"].iloc[memory["allocated_bytes"].argmax()]
    events: pd.DataFrame = memory[(memory["device"] == fullest).to_numpy(bool)]
    return events


def held_at_peak(trace: Trace) -> dict[str, int]:
    """Returns the bytes of each kind that a step holds when it holds the most, on the device where that is the most."""
    events = events_of_fullest_device(trace)
    if not len(events):
        return dict.fromkeys(STORAGE_KINDS, 0)
    events = events.iloc[: int(events["allocated_bytes"].argmax()) + 1]
    kinds = trace.storages["kind"].to_numpy()[events["allocation_id"].to_numpy(np.int64)]
    held = events["delta_bytes"].groupby(kinds).sum()
    return {kind: int(held.get(kind, 0)) for kind in STORAGE_KINDS}
