"""Tests tracks: one per thread and stream, and what crosses goes into another lane."""

import numpy as np
import pytest

from nbkit.trace.export.tracks import lanes, times_ns, tracks
from tests.support.fakes import make_ops


def numbers(*values):
    return np.array(values, dtype=np.int64)


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        ((0, 1, 2), (9, 3, 3), (0, 0, 0)),  # inside
        ((0, 5), (5, 9), (0, 0)),  # behind
        ((0, 3), (5, 9), (0, 1)),  # across
        ((0, 3, 4, 8), (5, 9, 6, 10), (0, 1, 1, 0)),
        ((0, 0), (3, 9), (0, 0)),  # the longer one is around the other
    ],
)
def test_lanes(start, end, expected):
    assert lanes(numbers(*([0] * len(start))), numbers(*start), numbers(*end)).tolist() == list(expected)


def test_tracks_stand_in_order_of_threads_then_devices():
    kernel = {"level": "kernel", "total_time_us": 0.5}
    rows = {"thread": 1}, {**kernel, "device": "cuda:0", "stream": 7}, {"thread": 0}, {**kernel, "device": "cuda:0"}
    placed = tracks(make_ops(*rows))
    assert placed.names == ("thread 0", "thread 1", "work", "stream 7")
    assert placed.groups == ("host", "host", "cuda:0", "cuda:0")
    assert placed.number.tolist() == [1, 3, 0, 2]


def test_times_are_whole_nanoseconds():
    start, end = times_ns(make_ops({"start_us": 0.1 + 0.2, "total_time_us": 0.7}))
    assert (start.tolist(), end.tolist()) == ([300], [1000])
