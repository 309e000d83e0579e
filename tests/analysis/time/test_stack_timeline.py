"""Stacks of a snapshot over time, as rows that a flame graph can show."""

from nbkit.analysis.time import stack_timeline as module
from nbkit.analysis.time.stack_timeline import stack_timeline
from tests.support.snapshots import Allocator, frame, grown, read, snapshot_of

TORCH = "/env/site-packages/torch/nn/modules/module.py"


def test_calls_that_follow_each_other_are_one_row_until_the_next_allocation():
    trace = read(grown())
    ops, left_out = stack_timeline(trace.memory, trace.stacks)
    assert left_out == 0
    names = ("parent_id", "op", "start_us", "total_time_us", "self_time_us", "source")
    rows = ops[list(names)].astype(object).where(ops[list(names)].notna(), None).to_numpy().tolist()
    # The events are 10 us apart: two allocations, then a free in two.
    assert rows == [
        [None, "main", 0.0, 20.0, 0.0, "train.py:1"],
        [0, "step", 0.0, 20.0, 0.0, "train.py:5"],
        [1, "work", 0.0, 10.0, 10.0, "train.py:7"],
        [1, "work", 10.0, 10.0, 10.0, "train.py:8"],
    ]
    assert ops["size_bytes"].fillna(0).tolist() == [0, 0, 2048, 6144]


def test_calls_that_only_pass_on_and_native_code_below_python_are_left_out():
    allocator, native = Allocator(), {"name": "at::empty", "filename": "Empty.cpp", "line": 3}
    allocator.alloc(1, [native, frame("forward", 9), frame("_call_impl", 1789, TORCH), frame("main", 1)])
    allocator.alloc(1, [native, {**native, "name": "Engine"}])
    trace = read(snapshot_of(allocator))
    assert stack_timeline(trace.memory, trace.stacks)[0]["op"].tolist() == ["main", "forward", "Engine", "at::empty"]


def test_each_device_has_a_thread():
    first, second = Allocator(), Allocator(device=1)
    for allocator in (first, second):
        allocator.alloc(8, [frame("main", 1)])
    trace = read(snapshot_of(first, second))
    ops, _ = stack_timeline(trace.memory, trace.stacks)
    assert ops[["device", "thread"]].to_numpy().tolist() == [["cuda:0", 0], ["cuda:1", 1]]


def test_of_too_many_allocations_the_smallest_are_left_out(monkeypatch):
    monkeypatch.setattr(module, "MOST_ROWS", 10)
    allocator = Allocator()
    for number in range(64):
        allocator.alloc(100 + number, [frame("work", 10 + number), frame("main", 1)])
    trace = read(snapshot_of(allocator))
    ops, left_out = stack_timeline(trace.memory, trace.stacks)
    assert (len(ops), left_out) == (9, 56)
    assert ops["size_bytes"].dropna().tolist() == [*range(156, 164)]


def test_of_equal_allocations_some_of_each_time_are_drawn(monkeypatch):
    monkeypatch.setattr(module, "MOST_ROWS", 20)
    allocator = Allocator()
    for number in range(64):
        allocator.alloc(512, [frame("work", 10 + number), frame("main", 1)])
    trace = read(snapshot_of(allocator))
    ops, left_out = stack_timeline(trace.memory, trace.stacks)
    assert left_out == 48
    assert ops["source"][1:].tolist() == [f"train.py:{line}" for line in range(10, 74, 4)]


def test_a_snapshot_without_stacks_has_no_rows():
    allocator = Allocator()
    allocator.alloc(8)
    trace = read(snapshot_of(allocator))
    assert len(stack_timeline(trace.memory, trace.stacks)[0]) == 0
