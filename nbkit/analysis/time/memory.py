"""Finds the peak of memory: how high, when, and which allocations make it up."""

import numpy as np
import numpy.typing as npt
import pandas as pd

from nbkit.errors import OptionError, nearest
from nbkit.schema import MEMORY, OPS, TEXT

OWNERS = ["op", "model", "module", "phase"]
NAMES = [*OWNERS, "source"]


def memory_peaks(memory: pd.DataFrame) -> pd.DataFrame:
    """Returns per device: device, peak_bytes, time_us (when first reached), op_id (that allocated then, or null).

    peak_bytes is of allocated_bytes; where that is null, of the sum of the allocations and frees so far.
    """
    rows = peak_rows(memory)
    columns = {
        "device": memory["device"].to_numpy(dtype=object)[rows],
        "peak_bytes": _allocated(memory)[rows],
        "time_us": memory["time_us"].to_numpy()[rows],
        "op_id": memory["op_id"].array.take(rows),
    }
    return pd.DataFrame(columns).astype({"device": TEXT})


def live_at_peak(memory: pd.DataFrame, ops: pd.DataFrame) -> pd.DataFrame:
    """Returns the allocations that were live at the peak of their device, largest first; ties in order of time.

    Columns: device, allocation_id, size_bytes, time_us, freed_us (null if the recording ended first), op_id and op,
    model, module, phase, source of the op that allocated it.
    """
    memory = MEMORY.check(memory)
    is_live, freed = live_rows(memory)
    live = memory.loc[is_live, ["device", "allocation_id", "delta_bytes", "time_us", "op_id"]]
    live = live.rename(columns={"delta_bytes": "size_bytes"}).reset_index(drop=True)
    freed_us = memory["time_us"].reindex(freed[is_live]).to_numpy()
    owner = OPS.check(ops)[NAMES].reindex(live["op_id"].astype("float64")).reset_index(drop=True)
    names = ["device", "allocation_id", "size_bytes", "time_us", "freed_us", "op_id", *NAMES]
    live = live.assign(freed_us=freed_us).join(owner)[names]
    return live.sort_values("size_bytes", ascending=False, kind="stable", ignore_index=True)


def live_rows(memory: pd.DataFrame) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.float64]]:
    """Returns which rows are allocations live at the peak of their device, and the row that frees each, NaN if none."""
    peaks = dict(zip(_devices(memory), peak_rows(memory).tolist(), strict=True))
    row = np.arange(len(memory))
    peak = memory["device"].map(peaks).to_numpy(np.float64)
    is_allocation = (memory["delta_bytes"] > 0).to_numpy(bool)
    frees = memory[~is_allocation & memory["allocation_id"].notna().to_numpy(bool)]
    freed_at = pd.Series(frees.index.to_numpy(np.float64), index=frees["allocation_id"].astype("int64"))
    freed = np.asarray(memory["allocation_id"].map(freed_at), np.float64)
    return is_allocation & (row <= peak) & ~(freed <= peak), freed


def held_at_peak(memory: pd.DataFrame, ops: pd.DataFrame, by: list[str] = OWNERS) -> pd.DataFrame:
    """Returns who holds the peak: per device and `by` (of op, model, module, phase, source), most bytes first.

    Columns: device, the names in `by`, allocations, held_bytes, held_fraction of the device's peak. What was there
    before the recording, or is not known, is a row with null names and no allocations. Raises OptionError for other
    names.
    """
    if not isinstance(by, list | tuple):
        raise OptionError(f"by must be a list of names, such as ['module'], got {by!r}.")
    if strange := [name for name in by if name not in NAMES]:
        raise OptionError(f"by={by!r} names {strange[0]!r}, which no allocation has; {nearest(str(strange[0]), NAMES)}")
    live = live_at_peak(memory, ops)
    groups = live.groupby(["device", *by], dropna=False, sort=False, as_index=False)
    held = groups.agg(allocations=("size_bytes", "size"), held_bytes=("size_bytes", "sum"))
    peaks = memory_peaks(memory).set_index("device")["peak_bytes"]
    unknown = peaks.sub(held.groupby("device")["held_bytes"].sum(), fill_value=0).astype("int64")
    unknown = unknown[unknown > 0]
    rest = pd.DataFrame({"device": unknown.index.array, "allocations": 0, "held_bytes": unknown.array})
    held = pd.concat([held, rest], ignore_index=True).astype({"device": TEXT, **dict.fromkeys(by, TEXT)})
    held["held_fraction"] = held["held_bytes"] / held["device"].map(peaks).astype("float64")
    return held.sort_values("held_bytes", ascending=False, kind="stable", ignore_index=True)


def _allocated(memory: pd.DataFrame) -> npt.NDArray[np.int64]:
    """Returns bytes on the device after each event."""
    allocated = MEMORY.check(memory)["allocated_bytes"]
    if allocated.isna().any():
        summed = memory.groupby("device", sort=False, dropna=False)["delta_bytes"].cumsum()
        allocated = allocated.fillna(summed.astype("Int64"))
    return allocated.to_numpy(np.int64)


def _devices(memory: pd.DataFrame) -> list[str]:
    return sorted(memory["device"].dropna().unique().tolist())


def peak_rows(memory: pd.DataFrame) -> npt.NDArray[np.int64]:
    """Returns row of the first highest value of each device, devices in order of name."""
    allocated = pd.Series(_allocated(memory)).groupby(memory["device"], sort=True)
    return allocated.idxmax().to_numpy(np.int64)
