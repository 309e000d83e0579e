"""Builds the `memory` frame of a timeline."""

import numpy as np
import numpy.typing as npt
import pandas as pd

from nbkit.schema import MEMORY as MEMORY_TABLE
from nbkit.schema import TEXT, nullable
from nbkit.timeline.events import ABSENT, MEMORY, Events, Ints

UNKNOWN = (ABSENT, 0)  # no address


def memory_frame(events: Events, op_id: Ints, time_us: npt.NDArray[np.float64]) -> pd.DataFrame | None:
    """Returns allocations and frees in order of time, if there are any; `op_id` and `time_us` are the events'."""
    rows = np.flatnonzero(events.kind == MEMORY)
    if not len(rows):
        return None
    devices = [events.texts("device")[row] for row in rows.tolist()]
    delta = events.integers("size_bytes")[rows]
    ids, unseen = allocation_ids(events.integers("address")[rows].tolist(), delta.tolist(), devices)
    allocated = _allocated(events.integers("allocated_bytes")[rows], delta - unseen, devices)
    return MEMORY_TABLE.frame(
        {
            "op_id": nullable(op_id[rows]),
            "time_us": time_us[rows],
            "device": pd.array(devices, dtype=TEXT),
            "delta_bytes": delta,
            "allocated_bytes": allocated,
            "allocation_id": nullable(ids),
        }
    )


def _allocated(reported: Ints, delta: Ints, devices: list[str | None]) -> pd.arrays.IntegerArray:
    """Returns bytes on the device after each event: from its allocator; on the CPU, which has none, the sum so far."""
    on_host = np.array([device == "cpu" for device in devices], dtype=bool)
    allocated = reported.copy()
    allocated[on_host] = np.cumsum(delta[on_host])
    return pd.arrays.IntegerArray(allocated, (reported == ABSENT) & ~on_host)


def allocation_ids(addresses: list[int], deltas: list[int], devices: list[str | None]) -> tuple[Ints, Ints]:
    """Returns a number per allocation and its free (-1 for the free of what came before), and bytes freed unseen.

    What a thread frees that is not recorded shows once its address is allocated again.
    """
    live: dict[tuple[str | None, int], tuple[int, int]] = {}  # number and bytes
    ids, unseen, count = [], [], 0
    for address, delta, device in zip(addresses, deltas, devices, strict=True):
        number, size_bytes = live.pop((device, address), (ABSENT, 0))
        if delta > 0:
            number = count
            count += 1
            if address not in UNKNOWN:
                live[device, address] = number, delta
        ids.append(number)
        unseen.append(size_bytes if delta > 0 else 0)
    return np.array(ids, dtype=np.int64), np.array(unseen, dtype=np.int64)
