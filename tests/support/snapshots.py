"""Makes memory snapshots as torch.cuda.memory._snapshot() does: a small caching allocator, and stacks of torch."""

import pickle
import weakref
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter

import nbkit
from nbkit.trace.trace import Trace

SEGMENT_BYTES, ROUNDED_TO = 2 << 20, 512
# Where the clock and the addresses of a snapshot begin.
START_US, ADDRESS = 1_700_000_000_000_000, 0x7F12_0000_0000
# What stands in a stack because ops are recorded by this file: the allocator of a device is below all Python.
BESIDE = (__file__, "torch/_dynamo/eval_frame.py", "torch/_compile.py", "/weakref.py")
Snapshot = dict[str, Any]


class Allocator:
    """Allocates as the caching allocator does: first fit in segments, blocks split and joined again; all is recorded.

    `max_entries` is how many events are kept, the last ones. `tick_us` passes between events.
    """

    def __init__(self, device: int = 0, max_entries: int = 1 << 40, tick_us: int = 10) -> None:
        self.device, self.max_entries, self.tick_us = device, max_entries, tick_us
        self.segments: list[Snapshot] = []
        self.events: list[Snapshot] = []
        self.live_bytes: dict[int, int] = {}
        self.time_us = START_US

    def alloc(self, size: int, frames: Any = ()) -> int:
        """Returns the address of `size` bytes."""
        taken = max(-(-size // ROUNDED_TO), 1) * ROUNDED_TO
        found = self._free_block(taken)
        if found is None:
            whole = max(-(-taken // SEGMENT_BYTES), 1) * SEGMENT_BYTES
            address = ADDRESS + (self.device << 40) + sum(segment["total_size"] for segment in self.segments)
            block = {"address": address, "size": whole, "state": "inactive", "requested_size": 0, "frames": []}
            head = {"device": self.device, "stream": 0, "segment_type": "large", "segment_pool_id": (0, 0)}
            self.segments.append({**head, "address": address, "total_size": whole, "blocks": [block]})
            self._event("segment_alloc", address, whole, frames)
            found = self._free_block(taken)
        assert found is not None
        blocks, block = found
        if block["size"] > taken:
            rest = {**block, "address": block["address"] + taken, "size": block["size"] - taken}
            blocks.insert(blocks.index(block) + 1, rest)
        block.update(size=taken, state="active_allocated", requested_size=size, frames=frames)
        self.live_bytes[block["address"]] = size
        self._event("alloc", block["address"], size, frames)
        return int(block["address"])

    def free(self, address: int, frames: Any = (), *, is_awaited: bool = False) -> None:
        """Frees what is there; the free completes at once, unless another stream `is_awaited`."""
        blocks = next(one["blocks"] for one in self.segments if any(b["address"] == address for b in one["blocks"]))
        block = next(block for block in blocks if block["address"] == address)
        size = self.live_bytes.pop(address)
        self._event("free_requested", address, size, frames)
        block["state"] = "active_awaiting_free"
        if is_awaited:
            return
        self._event("free_completed", address, size, frames)
        block.update(state="inactive", requested_size=0, frames=[])
        self._join(blocks)

    def fail(self, size: int, free_bytes: int, frames: Any = ()) -> None:
        """Records a request that the device could not meet."""
        event = {"action": "oom", "size": size, "stream": 0, "device_free": free_bytes, "frames": frames}
        self.events.append({**event, "time_us": self._now()})

    def _join(self, blocks: list[Snapshot]) -> None:
        for left, right in pairwise(list(blocks)):
            if left["state"] == right["state"] == "inactive":
                # The joined block stands where the right one did.
                right.update(address=left["address"], size=left["size"] + right["size"])
                blocks[:] = [block for block in blocks if block is not left]

    def _free_block(self, size: int) -> tuple[list[Snapshot], Snapshot] | None:
        for segment in self.segments:
            for block in segment["blocks"]:
                if block["state"] == "inactive" and block["size"] >= size:
                    return segment["blocks"], block
        return None

    def _event(self, action: str, address: int, size: int, frames: Any) -> None:
        event = {"action": action, "addr": address, "size": size, "stream": 0, "frames": frames}
        rest = {"compile_context": "", "user_metadata": "", "pool_id": (0, 0)}
        self.events.append({**event, **rest, "time_us": self._now()})

    def _now(self) -> int:
        self.time_us += self.tick_us
        return self.time_us


def snapshot_of(*allocators: Allocator) -> Snapshot:
    """Returns the snapshot, with stacks that torch has symbolized, if it gathered any."""
    kept = [one.events[-one.max_entries :] for one in allocators]
    segments = [
        {**segment, "allocated_size": _sum(segment, "active_allocated"),
         "active_size": _sum(segment, "active_allocated") + _sum(segment, "active_awaiting_free")}
        for one in allocators for segment in one.segments
    ]  # fmt: skip
    places = [event for events in kept for event in events]
    places += [block for segment in segments for block in segment["blocks"]]
    gathered = {id(one["frames"]): one["frames"] for one in places if not isinstance(one["frames"], list | tuple)}
    stacks = torch._C._profiler.symbolize_tracebacks(list(gathered.values()))
    lists = {
        key: [frame for frame in frames if not frame["filename"].endswith(BESIDE)]
        for key, frames in zip(gathered, stacks, strict=True)
    }
    for one in places:
        one["frames"] = lists.get(id(one["frames"]), one["frames"] or [])
    traces: list[list[Snapshot]] = [[] for _ in range(max(one.device for one in allocators) + 1)]
    for one, events in zip(allocators, kept, strict=True):
        traces[one.device] = events
    settings = {"PYTORCH_CUDA_ALLOC_CONF": "", "max_split_size": -1, "roundup_power2_divisions": {"1": 0}}
    return {"segments": segments, "device_traces": traces, "allocator_settings": settings, "external_annotations": []}


def _sum(segment: Snapshot, state: str) -> int:
    return sum(block["size"] for block in segment["blocks"] if block["state"] == state)


class OnAllocator(TorchDispatchMode):
    """Gives each new storage of the ops inside a place in the allocator, and frees it when the storage dies."""

    def __init__(self, allocator: Allocator) -> None:
        super().__init__()
        self.allocator = allocator
        self.known: dict[int, int] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        for tensor in tree_iter(result):
            if isinstance(tensor, torch.Tensor) and tensor.untyped_storage().nbytes():
                self.place(tensor)
        return result

    def place(self, tensor: torch.Tensor) -> None:
        """Allocates the storage of a tensor, if it is new."""
        storage = tensor.untyped_storage()
        if storage._cdata in self.known:
            return
        stack = torch._C._profiler.gather_traceback(True, True, False)
        self.known[storage._cdata] = address = self.allocator.alloc(storage.nbytes(), stack)
        weakref.finalize(storage, self._release, storage._cdata, address)

    def _release(self, key: int, address: int) -> None:
        self.known.pop(key, None)
        if address in self.allocator.live_bytes:
            self.allocator.free(address, torch._C._profiler.gather_traceback(True, True, False))


def frame(name: str, line: int, filename: str = "train.py") -> Snapshot:
    """Returns a frame of a stack."""
    return {"name": name, "filename": filename, "line": line}


def grown() -> Snapshot:
    """Returns 4 KiB of weights that were there before, 8 KiB of activations at the peak, of which 6 KiB are freed.

    The stacks are main -> build (line 2) and main -> step -> work (line 7 or 8).
    """
    main, allocator = frame("main", 1), Allocator()
    allocator.alloc(4096, [frame("build", 2), main])
    allocator.events.clear()
    allocator.alloc(2048, [frame("work", 7), frame("step", 5), main])
    large = allocator.alloc(6144, [frame("work", 8), frame("step", 5), main])
    allocator.free(large, [frame("step", 6), main])
    return snapshot_of(allocator)


def read(snapshot: Snapshot) -> Trace:
    """Returns the trace of a snapshot, by way of a file."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "snapshot.pickle"
        path.write_bytes(pickle.dumps(snapshot))
        return nbkit.load(path)
