"""Who holds the memory of a snapshot, at its peak and at its end; how the allocator uses what it holds."""

import copy

import pytest
from torch.cuda import _memory_viz

from nbkit.analysis.time.allocations import allocations_at_peak, allocator_use, held_at_peak_by, live_at_end_by
from nbkit.errors import SchemaError
from nbkit.trace.trace import Trace
from tests.support.snapshots import Allocator, Snapshot, frame, grown, read, snapshot_of


def torch_bytes(snapshot: Snapshot) -> dict[str, int]:
    """Returns what torch's own flame graph has of blocks in use, by the innermost function."""
    text = _memory_viz.memory(copy.deepcopy(snapshot), format_flamegraph=str)
    held: dict[str, int] = {}
    for line in text.splitlines():
        path, _, size = line.rpartition(" ")
        if ";active_allocated;" in path and not path.endswith("<gaps>"):
            name = path.rpartition(";")[2]
            held[name] = held.get(name, 0) + int(size)
    return held


def test_the_peak_is_held_by_what_was_there_before_too():
    trace = read(grown())
    held = held_at_peak_by(trace.memory, trace.stacks, trace.blocks, ["user_line"])
    assert held.to_numpy().tolist() == [
        ["cuda:0", "train.py:8", 1, 6144, 0.5],
        ["cuda:0", "train.py:2", 1, 4096, 4096 / 12288],
        ["cuda:0", "train.py:7", 1, 2048, 2048 / 12288],
    ]


def test_what_was_freed_and_has_no_stack_is_a_row_of_its_own():
    allocator = Allocator()
    early = allocator.alloc(1000, [frame("lost", 1)])
    allocator.events.clear()
    allocator.alloc(24, [frame("kept", 2)])
    allocator.free(early)
    trace = read(snapshot_of(allocator))
    rows = allocations_at_peak(trace.memory, trace.blocks)
    assert rows["size_bytes"].tolist() == [24, 1000] and rows["stack_id"].isna().tolist() == [False, True]
    held = held_at_peak_by(trace.memory, trace.stacks, trace.blocks, ["user_line"])
    assert held["user_line"].fillna("none").tolist() == ["none", "train.py:2"]


def test_the_end_is_what_torch_says_of_the_blocks():
    snapshot = grown()
    trace = read(snapshot)
    held = live_at_end_by(trace.blocks, trace.stacks, ["user_line"])
    by_line = dict(zip(held["user_line"], held["held_bytes"].tolist(), strict=True))
    assert by_line == {"train.py:2": 4096, "train.py:7": 2048}
    assert torch_bytes(snapshot) == {"train.py:2:build": 4096, "train.py:7:work": 2048}


def test_each_byte_of_the_allocator_is_counted_once_as_torch_does():
    allocator = Allocator()
    addresses = [allocator.alloc(size) for size in (100, 5000, 3 << 20, 700)]
    allocator.free(addresses[1])
    allocator.free(addresses[3], is_awaited=True)
    snapshot = snapshot_of(allocator)
    (use,) = allocator_use(read(snapshot).blocks).to_dict("records")
    assert use["segments"] == 2
    assert use["allocated_bytes"] == 100 + (3 << 20)
    assert use["awaiting_bytes"] == 1024 and use["rounding_bytes"] == 412
    parts = ("allocated_bytes", "rounding_bytes", "awaiting_bytes", "free_bytes")
    assert sum(use[name] for name in parts) == use["reserved_bytes"]
    # To torch what is awaited is free, and so is what rounding takes.
    sums = _memory_viz.segsum(copy.deepcopy(snapshot))
    free = use["free_bytes"] + use["awaiting_bytes"] + use["rounding_bytes"]
    assert f"total_free: {_memory_viz.Bytes(free)} (" in sums
    assert f"total_allocated: {_memory_viz.Bytes(use['allocated_bytes'])}\n" in sums


@pytest.mark.parametrize("lacks", ["memory", "blocks"])
def test_frames_of_another_form_are_refused(lacks):
    trace = read({"segments": [], "device_traces": []})
    frames = {"memory": trace.memory, "blocks": trace.blocks}
    with pytest.raises(SchemaError, match=f"^{lacks} "):
        allocations_at_peak(**{**frames, lacks: frames[lacks].drop(columns="device")})


def test_frames_of_nothing_are_empty():
    trace: Trace = read({"segments": [], "device_traces": []})
    assert len(held_at_peak_by(trace.memory, trace.stacks, trace.blocks, ["user_line", "phase"])) == 0
    assert len(live_at_end_by(trace.blocks, trace.stacks, ["module"])) == 0
    assert len(allocator_use(trace.blocks)) == 0
