"""What nbkit does itself is taken out of a profiler's timeline: its time, and the memory that it allocates."""

import numpy as np

from nbkit.capture.profiler.own_work import without_own_work
from nbkit.timeline import HOST, MEMORY, Events


def events(*rows, **more):
    """Host events (name, start, duration)."""
    names, starts, durations = zip(*rows, strict=True)
    kind = np.full(len(rows), HOST, dtype=np.int8)
    return Events(list(names), kind, np.array(starts), np.array(durations), np.zeros(len(rows), dtype=np.int64), **more)


def memory(*rows, device):
    """Allocations and frees (time, bytes, address, bytes that the device's allocator reports)."""
    times, sizes, addresses, allocated = (np.array(column) for column in zip(*rows, strict=True))
    made = events(*(("[memory]", time, 0) for time in times), device=[device] * len(rows))
    made.kind = np.full(len(rows), MEMORY, dtype=np.int8)
    made.size_bytes, made.address, made.allocated_bytes = sizes, addresses, allocated
    return made


def times(made):
    return list(zip(made.name, made.start_ns.tolist(), made.duration_ns.tolist(), strict=True))


def test_time_stands_still_in_our_own_work():
    step = events(("step", 0, 100), ("mm", 10, 20), ("add", 40, 10), ("inside", 62, 5), ("late", 80, 10))
    shifted = without_own_work(step, np.array([[20, 25], [60, 70]]))
    assert times(shifted) == [("step", 0, 85), ("mm", 10, 15), ("add", 35, 10), ("inside", 55, 0), ("late", 65, 10)]


def test_no_span_changes_nothing():
    step = events(("mm", 10, 20))
    assert without_own_work(step, np.empty((0, 2), dtype=np.int64)) is step


def test_memory_that_we_allocate_is_left_out_until_it_is_free():
    rows = (1, 100, 7, -1), (11, 500, 8, -1), (20, 30, 9, -1), (30, -500, 8, -1), (40, 60, 8, -1), (50, -60, 8, -1)
    kept = without_own_work(memory(*rows, device="cpu"), np.array([[10, 15]]))
    assert kept.size_bytes.tolist() == [100, 30, 60, -60]


def test_what_an_allocator_reports_is_less_our_own():
    rows = (1, 100, 7, 1100), (11, 500, 8, 1600), (20, 30, 9, 1630), (30, -500, 8, 1130)
    kept = without_own_work(memory(*rows, device="cuda:0"), np.array([[10, 15]]))
    assert kept.allocated_bytes.tolist() == [1100, 1130]
