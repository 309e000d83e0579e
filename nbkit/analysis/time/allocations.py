"""Tells from a memory snapshot which lines and modules hold memory, and how much of it the allocator leaves unused."""

import numpy as np
import pandas as pd

from nbkit.analysis.time.memory import live_rows, memory_peaks
from nbkit.schema import BLOCKS, MEMORY, STACKS, TEXT

# What a stack tells of an allocation.
OWNERS = ["user_line", "module", "phase"]
IN_USE, AWAITING, FREE = "active_allocated", "active_awaiting_free", "inactive"


def allocations_at_peak(memory: pd.DataFrame, blocks: pd.DataFrame) -> pd.DataFrame:
    """Returns what was allocated at the peak of each device, a row each: device, stack_id, size_bytes.

    Blocks that were there before the first event and are in use at the end are rows, too: the snapshot has their
    stacks. What was freed in between, and nobody knows the stack of, is one row per device without a stack.
    """
    memory, blocks = MEMORY.check(memory), BLOCKS.check(blocks)
    names = ["device", "stack_id", "size_bytes"]
    live = memory.loc[live_rows(memory)[0], ["device", "stack_id", "delta_bytes"]].set_axis(names, axis=1)
    peaks = memory_peaks(memory).set_index("device")["peak_bytes"]
    is_earlier = (blocks["state"] == IN_USE) & blocks["allocation_id"].isna() & blocks["device"].isin(peaks.index)
    earlier = blocks.loc[is_earlier, ["device", "stack_id", "requested_bytes"]].set_axis(names, axis=1)
    known = pd.concat([live, earlier.astype({"size_bytes": "int64"})], ignore_index=True)
    rest = peaks.sub(known.groupby("device")["size_bytes"].sum(), fill_value=0).astype("int64")
    rest = rest[rest > 0]
    unknown = pd.DataFrame({"device": rest.index.array, "size_bytes": rest.array})
    both: pd.DataFrame = pd.concat(
        [known, unknown.reindex(columns=names).astype({"stack_id": "Int64"})], ignore_index=True
    )
    return both.astype({"device": TEXT})


def held_at_peak_by(memory: pd.DataFrame, stacks: pd.DataFrame, blocks: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """Returns who holds the peak of a snapshot: per device and `by` (of user_line, module, phase), most bytes first.

    Columns: device, the names in `by`, allocations, held_bytes, held_fraction of the device's peak. What has no stack,
    such as what came before the first event, has null names.
    """
    return _shares(allocations_at_peak(memory, blocks), stacks, by)


def live_at_end_by(blocks: pd.DataFrame, stacks: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """Returns who holds what was in use when the snapshot was taken: per device and `by`, most bytes first.

    Columns: device, the names in `by`, allocations, held_bytes, held_fraction of all that was in use on the device.
    """
    blocks = BLOCKS.check(blocks)
    live = blocks.loc[blocks["state"] == IN_USE, ["device", "stack_id", "requested_bytes"]]
    live = live.rename(columns={"requested_bytes": "size_bytes"}).astype({"size_bytes": "int64"})
    return _shares(live, stacks, by)


def allocator_use(blocks: pd.DataFrame) -> pd.DataFrame:
    """Returns per device how the allocator used what it held when the snapshot was taken, in bytes.

    Columns: device, segments, reserved_bytes (what it held), allocated_bytes (what was asked for and is in use),
    rounding_bytes (what blocks in use take beyond that), awaiting_bytes (freed, but another stream may use it),
    free_bytes, and largest_free_bytes, the longest block of it: what a request can get without more from the device.
    """
    blocks = BLOCKS.check(blocks)
    used, size = blocks["state"] == IN_USE, blocks["size_bytes"]
    requested = blocks["requested_bytes"].fillna(0).astype("int64")
    is_free = blocks["state"] == FREE
    parts = pd.DataFrame(
        {
            "device": blocks["device"],
            "reserved_bytes": size,
            "allocated_bytes": requested.where(used, 0),
            "rounding_bytes": (size - requested).where(used, 0),
            "awaiting_bytes": size.where(blocks["state"] == AWAITING, 0),
            "free_bytes": size.where(is_free, 0),
        }
    )
    use = parts.groupby("device").sum()
    use.insert(0, "segments", blocks.groupby("device")["segment_address"].nunique())
    use["largest_free_bytes"] = size.where(is_free, 0).groupby(blocks["device"]).max()
    return use.reset_index().astype({"device": TEXT})


def _shares(held: pd.DataFrame, stacks: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """Returns number, bytes and share of allocations by device and what their stacks tell, most bytes first."""
    row = held["stack_id"].to_numpy(np.int64, na_value=-1)
    owners = STACKS.check(stacks)[by].reindex(row).reset_index(drop=True)
    groups = held.reset_index(drop=True).join(owners).groupby(["device", *by], dropna=False, sort=False, as_index=False)
    totals = groups.agg(allocations=("size_bytes", "size"), held_bytes=("size_bytes", "sum"))
    totals = totals.astype({"device": TEXT, **dict.fromkeys(by, TEXT)})
    whole = held.groupby("device")["size_bytes"].sum()
    totals["held_fraction"] = totals["held_bytes"] / totals["device"].map(whole).astype("float64")
    return totals.sort_values("held_bytes", ascending=False, kind="stable", ignore_index=True)
