"""The `memory` frame of a timeline."""

import numpy as np
import numpy.typing as npt
import pandas as pd

from nbkit.schema import MEMORY as MEMORY_TABLE
from nbkit.timeline.events import ABSENT, MEMORY, Events, Ints


def memory_frame(events: Events, op_id: Ints, time_us: npt.NDArray[np.float64]) -> pd.DataFrame | None:
    """Allocations and frees in order of time; None if there are none. `op_id` and `time_us` are those of the events."""
    rows = np.flatnonzero(events.kind == MEMORY)
    if not len(rows):
        return None
    devices = [events.texts("device")[row] for row in rows.tolist()]
    delta = events.integers("size_bytes")[rows]
    allocated = _allocated(events.integers("allocated_bytes")[rows], delta, devices)
    ids = allocation_ids(events.integers("address")[rows].tolist(), delta.tolist(), devices)
    return MEMORY_TABLE.frame(
        {
            "op_id": _nullable(op_id[rows]),
            "time_us": time_us[rows],
            "device": pd.array(devices, dtype="str"),
            "delta_bytes": delta,
            "allocated_bytes": allocated,
            "allocation_id": _nullable(ids),
        }
    )


def _allocated(told: Ints, delta: Ints, devices: list[str | None]) -> pd.arrays.IntegerArray:
    """Bytes on the device after each event: what its allocator says; on the CPU, where none does, the sum so far."""
    on_host = np.array([device == "cpu" for device in devices], dtype=bool)
    allocated = told.copy()
    allocated[on_host] = np.cumsum(delta[on_host])
    return pd.arrays.IntegerArray(allocated, (told == ABSENT) & ~on_host)


def allocation_ids(addresses: list[int], deltas: list[int], devices: list[str | None]) -> Ints:
    """A number per allocation, the same for its free; -1 for the free of what came before."""
    live: dict[tuple[str | None, int], int] = {}
    ids, count = [], 0
    for address, delta, device in zip(addresses, deltas, devices, strict=True):
        if delta > 0:
            live[device, address] = count
            ids.append(count)
            count += 1
        else:
            ids.append(live.pop((device, address), ABSENT))
    return np.array(ids, dtype=np.int64)


def _nullable(values: Ints) -> pd.arrays.IntegerArray:
    return pd.arrays.IntegerArray(np.asarray(values, dtype=np.int64), np.asarray(values) == ABSENT)
