"""Makes the frames `memory` and `blocks`: what was allocated and reserved after each event, back from the end."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from nbkit.readers.snapshot.events import ALLOC, FREE, OOM, RELEASE, RESERVE, Blocks, Events
from nbkit.schema import BLOCKS, MEMORY, TEXT, nullable

Ints = npt.NDArray[np.int64]
ACTIVE = "active_allocated"


@dataclass(frozen=True)
class OutOfMemory:
    """A request that failed: when and where, its bytes, those left on the device, and what the allocator had."""

    time_us: float
    device: str
    size_bytes: int
    free_bytes: int | None
    allocated_bytes: int
    reserved_bytes: int | None
    stack_id: int


class History:
    """Puts the events of all devices in order of time, and finds what was there before the first of them.

    The segments say what was there at the end; the events lead back from it, so that it does not matter if the first
    ones are lost. `base_bytes` is what was allocated on each device then, `mismatch_bytes` by how much events and
    segments contradict each other.
    """

    def __init__(self, events: Events, blocks: Blocks, segments: tuple[Ints, Ints], stack_ids: Ints) -> None:
        self._events, self._blocks = events, blocks
        self._stack_ids, self._block_stacks = np.split(stack_ids, [len(events.kind)])
        known = (events.device, blocks.device, segments[0])
        self.devices = max((int(device.max()) + 1 for device in known if len(device)), default=0)
        self.time_us, self.start_us = _times(events)
        self.base_bytes, self.mismatch_bytes = np.zeros(self.devices, np.int64), np.zeros(self.devices, np.int64)
        self._rows = np.flatnonzero((events.kind == ALLOC) | (events.kind == FREE))
        self._rows = self._rows[np.argsort(self.time_us[self._rows], kind="stable")]
        self._ids, unseen = _allocation_ids(events, self._rows)
        change = np.zeros(len(events.kind), np.int64)
        change[self._rows] = self._delta() - unseen
        change_reserved = np.select(
            [events.kind == RESERVE, events.kind == RELEASE], [events.size_bytes, -events.size_bytes]
        )
        self._allocated, self._reserved = np.zeros_like(change), np.zeros_like(change)
        for device in range(self.devices):
            self._lead_back(device, change, change_reserved, segments)

    def _lead_back(self, device: int, change: Ints, change_reserved: Ints, segments: tuple[Ints, Ints]) -> None:
        blocks, rows = self._blocks, np.flatnonzero(self._events.device == device)
        is_active = np.array([state == ACTIVE for state in blocks.state], bool) & (blocks.device == device)
        since, reserved = np.cumsum(change[rows]), np.cumsum(change_reserved[rows])
        base = int(blocks.requested_bytes[is_active].sum()) - (int(since[-1]) if len(rows) else 0)
        # Never was less than nothing allocated.
        self.mismatch_bytes[device] = max(-(base + int(since.min(initial=0))), 0)
        self.base_bytes[device] = base = base + int(self.mismatch_bytes[device])
        self._allocated[rows] = base + since
        end = int(segments[1][segments[0] == device].sum()) - (int(reserved[-1]) if len(rows) else 0)
        after = end + reserved
        # All that is allocated is reserved, unless the events of segments were not recorded.
        self._reserved[rows] = after if (after >= self._allocated[rows]).all() else -1

    def _delta(self) -> Ints:
        kind, size = self._events.kind[self._rows], self._events.size_bytes[self._rows]
        return np.where(kind == ALLOC, size, -size)

    @property
    def used_devices(self) -> list[str]:
        """Returns the devices that have events or segments, by number."""
        numbers = np.unique(np.concatenate([self._events.device, self._blocks.device]))
        return [f"cuda:{number}" for number in numbers.tolist()]

    def memory(self) -> pd.DataFrame:
        """Returns the frame `memory`."""
        rows, events = self._rows, self._events
        return MEMORY.frame(
            {
                "time_us": self.time_us[rows],
                "device": device_names(events.device[rows]),
                "delta_bytes": self._delta(),
                "allocated_bytes": nullable(self._allocated[rows]),
                "allocation_id": nullable(self._ids),
                "reserved_bytes": nullable(self._reserved[rows]),
                "stream": nullable(events.stream[rows]),
                "address": nullable(events.address[rows]),
                "stack_id": nullable(self._stack_ids[rows]),
            }
        )

    def blocks(self) -> pd.DataFrame:
        """Returns the frame `blocks`."""
        blocks = self._blocks
        is_used = np.array([state != "inactive" for state in blocks.state], bool)
        return BLOCKS.frame(
            {
                "device": device_names(blocks.device),
                "stream": nullable(blocks.stream),
                "segment_address": blocks.segment_address,
                "address": blocks.address,
                "size_bytes": blocks.size_bytes,
                "requested_bytes": nullable(np.where(is_used, blocks.requested_bytes, -1)),
                "state": pd.array(blocks.state, dtype=TEXT),
                "allocation_id": nullable(self._block_ids()),
                "stack_id": nullable(np.where(is_used, self._block_stacks, -1)),
            }
        )

    def out_of_memory(self) -> list[OutOfMemory]:
        """Returns the requests that failed, in order."""
        events = self._events
        return [
            OutOfMemory(
                float(self.time_us[row]),
                f"cuda:{events.device[row]}",
                int(events.size_bytes[row]),
                int(events.free_bytes[row]) if events.free_bytes[row] >= 0 else None,
                int(self._allocated[row]),
                int(self._reserved[row]) if self._reserved[row] >= 0 else None,
                int(self._stack_ids[row]),
            )
            for row in np.flatnonzero(events.kind == OOM).tolist()
        ]

    def _block_ids(self) -> Ints:
        """Returns the allocation of each block in use: the last of its address, if that was not freed since."""
        rows, blocks = self._rows, self._blocks
        kind, device, address = (
            values[rows] for values in (self._events.kind, self._events.device, self._events.address)
        )
        last = pd.Series(np.arange(len(rows))).groupby([device, address]).last()
        keys = pd.MultiIndex.from_arrays([blocks.device, blocks.address])
        row = last.reindex(keys).fillna(-1).to_numpy(np.int64)
        is_live = (row >= 0) & np.array([state == ACTIVE for state in blocks.state], bool)
        if not len(rows):
            return np.full(len(row), -1, np.int64)
        return np.where(is_live & (kind[row] == ALLOC), self._ids[row], -1)


def device_names(devices: Ints) -> Any:
    """Returns a column of names."""
    codes, numbers = pd.factorize(devices)
    return pd.array([f"cuda:{number}" for number in numbers], dtype=TEXT).take(codes)


def _times(events: Events) -> tuple[npt.NDArray[np.float64], int | None]:
    """Returns microseconds since the first event, and when that was on the clock of the file.

    Without times the first event of a device is at 0, the next at 1 us. The events of a device are in order, whatever
    the clock says that they were recorded by.
    """
    count = len(events.kind)
    if events.time_us is None:
        starts = np.searchsorted(events.device, events.device)
        return (np.arange(count) - starts).astype(np.float64), None
    start = int(events.time_us.min(initial=np.iinfo(np.int64).max)) if count else 0
    since = events.time_us - start
    for device in np.unique(events.device).tolist():
        rows = events.device == device
        since[rows] = np.maximum.accumulate(since[rows])
    return since.astype(np.float64), start


def _allocation_ids(events: Events, rows: Ints) -> tuple[Ints, Ints]:
    """Returns a number per allocation and its free, -1 for the free of what came before, and bytes freed unseen.

    What is freed without an event shows once its address is allocated again.
    """
    kind, device, address, size = (
        values[rows] for values in (events.kind, events.device, events.address, events.size_bytes)
    )
    is_alloc = kind == ALLOC
    ids = np.where(is_alloc, np.cumsum(is_alloc) - 1, -1)
    order = np.lexsort((np.arange(len(rows)), address, device))
    before, here = order[:-1], order[1:]
    follows = (device[before] == device[here]) & (address[before] == address[here]) & is_alloc[before]
    freed, again = follows & ~is_alloc[here], follows & is_alloc[here]
    ids[here[freed]] = ids[before[freed]]
    unseen = np.zeros(len(rows), np.int64)
    unseen[here[again]] = size[before[again]]
    return ids, unseen
