"""What was allocated and reserved after each event, against the allocator that made the events and torch's own sums."""

import copy
import itertools
import random

import pytest
import torch
from torch.cuda import _memory_viz

import nbkit
from tests.support.snapshots import Allocator, OnAllocator, snapshot_of


def busy(
    events: int = 400, *, max_entries: int = 1 << 40, device: int = 0, seed: int = 0
) -> tuple[Allocator, list[int]]:
    """Allocates and frees at random; gives back what was allocated after each of these events."""
    draw, allocator, after = random.Random(seed), Allocator(device, max_entries), []
    for _ in range(events):
        if allocator.live_bytes and draw.random() < 0.45:
            allocator.free(draw.choice(sorted(allocator.live_bytes)))
        else:
            allocator.alloc(draw.randrange(1, 3 << 20))
        after.append(sum(allocator.live_bytes.values()))
    return allocator, after


@pytest.mark.parametrize("max_entries", [1 << 40, 400, 7])
def test_the_curve_is_that_of_the_allocator_also_if_the_first_events_are_lost(dumped, max_entries):
    allocator, after = busy(max_entries=max_entries)
    memory = nbkit.load(dumped(snapshot_of(allocator))).memory
    assert 0 < len(memory) <= len(after)
    assert memory["allocated_bytes"].tolist() == after[-len(memory) :]


def test_reserved_and_allocated_end_where_torch_sums_the_segments_up(dumped):
    snapshot = snapshot_of(busy(max_entries=50)[0])
    torch_sums = _memory_viz.segsum(copy.deepcopy(snapshot))
    memory = nbkit.load(dumped(snapshot)).memory
    for name, label in (("reserved_bytes", "total_reserved"), ("allocated_bytes", "total_allocated")):
        assert f"{label}: {_memory_viz.Bytes(int(memory[name].iloc[-1]))}\n" in torch_sums


def test_reserved_grows_with_the_segments(dumped):
    allocator = Allocator()
    allocator.alloc(1 << 20)
    allocator.alloc(3 << 20)
    memory = nbkit.load(dumped(snapshot_of(allocator))).memory
    assert memory["reserved_bytes"].tolist() == [2 << 20, 6 << 20]
    assert memory["delta_bytes"].tolist() == [1 << 20, 3 << 20]
    assert memory["time_us"].tolist() == [0.0 + 10, 10.0 + 20]


def test_reserved_is_not_known_where_events_of_segments_were_left_out(dumped):
    allocator = Allocator()
    large = allocator.alloc(6 << 20)
    allocator.free(large)
    allocator.fail(1, 0)
    snapshot = snapshot_of(allocator)
    snapshot["segments"] = []  # released since then
    snapshot["device_traces"][0] = [e for e in snapshot["device_traces"][0] if e["action"] != "segment_alloc"]
    trace = nbkit.load(dumped(snapshot))
    assert trace.memory["reserved_bytes"].isna().all() and trace.memory["allocated_bytes"].tolist() == [6 << 20, 0]
    assert "0 B were allocated, 0 B were left" in trace.findings["message"][0]


def test_an_allocation_has_the_number_of_its_free_though_the_address_is_used_again(dumped):
    allocator = Allocator()
    first = allocator.alloc(512)
    allocator.free(first)
    assert allocator.alloc(100) == first
    trace = nbkit.load(dumped(snapshot_of(allocator)))
    assert trace.memory["allocation_id"].tolist() == [0, 0, 1]
    assert trace.memory["address"].nunique() == 1
    assert trace.blocks["allocation_id"].tolist()[:1] == [1] and trace.blocks["allocation_id"].isna().sum() == 1


def test_pairs_are_those_that_torch_finds(dumped):
    snapshot = snapshot_of(busy(max_entries=150)[0])
    memory = nbkit.load(dumped(snapshot)).memory
    left = _memory_viz.filter_alloc_free_pairs(copy.deepcopy(snapshot))["device_traces"][0]
    alone = memory.groupby("allocation_id")["delta_bytes"].transform("size").ne(2)
    expected = [event["addr"] for event in left if event["action"] in ("alloc", "free_requested")]
    assert memory.loc[alone.fillna(True), "address"].tolist() == expected


def test_a_free_that_another_stream_delays_counts_from_its_request(dumped):
    allocator = Allocator()
    allocator.free(allocator.alloc(512), is_awaited=True)
    trace = nbkit.load(dumped(snapshot_of(allocator)))
    assert trace.memory["allocated_bytes"].tolist() == [512, 0]
    assert trace.blocks["state"].tolist() == ["active_awaiting_free", "inactive"]


def test_devices_have_curves_of_their_own_in_one_order_of_time(dumped):
    (first, after), (second, after_1) = busy(100), busy(100, device=1, seed=1)
    memory = nbkit.load(dumped(snapshot_of(first, second))).memory
    assert memory["time_us"].is_monotonic_increasing
    for device, expected in (("cuda:0", after), ("cuda:1", after_1)):
        assert memory.loc[memory["device"] == device, "allocated_bytes"].tolist() == expected


def test_frees_that_nobody_recorded_show_when_their_address_is_used_again(dumped):
    allocator = Allocator()
    for _ in range(3):
        allocator.free(allocator.alloc(512))
    allocator.alloc(512)
    snapshot = snapshot_of(allocator)
    snapshot["device_traces"][0] = [e for e in snapshot["device_traces"][0] if not e["action"].startswith("free")]
    assert nbkit.load(dumped(snapshot)).memory["allocated_bytes"].tolist() == [512, 512, 512, 512]


def test_only_completed_frees_are_frees_where_no_request_was_recorded(dumped):
    allocator, after = busy(60)
    snapshot = snapshot_of(allocator)
    snapshot["device_traces"][0] = [e for e in snapshot["device_traces"][0] if e["action"] != "free_requested"]
    assert nbkit.load(dumped(snapshot)).memory["allocated_bytes"].tolist() == after


def test_contradicting_events_are_told(dumped):
    snapshot = snapshot_of(busy(60)[0])
    snapshot["segments"] = []
    trace = nbkit.load(dumped(snapshot))
    assert "Events and segments of cuda:0 contradict each other by" in " ".join(trace.meta["notes"])
    assert trace.memory["allocated_bytes"].min() >= 0


def test_without_times_events_are_counted(dumped):
    snapshot = snapshot_of(busy(10)[0])
    for event in snapshot["device_traces"][0]:
        del event["time_us"]
    trace = nbkit.load(dumped(snapshot))
    assert trace.memory["time_us"].is_monotonic_increasing
    assert "has no times" in " ".join(trace.meta["notes"])
    assert trace.meta["created"] is None


def test_a_step_of_torch_is_followed_to_the_byte(dumped):
    allocator = Allocator()
    model, x = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4)), torch.randn(2, 8)
    with OnAllocator(allocator):
        model(x).sum().backward()
    trace = nbkit.load(dumped(snapshot_of(allocator)))
    assert trace.memory["allocated_bytes"].iloc[-1] == sum(allocator.live_bytes.values())
    live = trace.blocks[trace.blocks["state"] == "active_allocated"]
    assert dict(zip(live["address"], live["requested_bytes"], strict=True)) == allocator.live_bytes
    assert trace.meta["created"].startswith("2023-11-14T22:13:20")


def test_a_block_of_torch_2_0_follows_the_one_before_it(dumped):
    snapshot = snapshot_of(busy(30)[0])
    expected = nbkit.load(dumped(snapshot)).blocks
    for block in itertools.chain.from_iterable(segment["blocks"] for segment in snapshot["segments"]):
        del block["address"]
        frames, size = block.pop("frames"), block.pop("requested_size")
        block["history"] = [{"real_size": size, "frames": frames}]
    assert nbkit.load(dumped(snapshot)).blocks["address"].tolist() == expected["address"].tolist()
