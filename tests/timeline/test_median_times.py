"""Tests the layout of a step whose calls have their median times, with times that are planted."""

import numpy as np
import pandas as pd

from nbkit.timeline.median_times import at_median_times, moved
from tests.support.fakes import make_ops


def _row(parent, start, total, own, **more):
    return {"parent_id": parent, "start_us": start, "total_time_us": total, "self_time_us": own, **more}


def _medians(ops, own, total=None, device=None):
    times = {"self_time_us": own, "total_time_us": total or own, "self_device_time_us": device or [np.nan] * len(own)}
    return pd.DataFrame(times, index=ops["op_id"])


# A call around two; 10 us of its own before the first, 30 between, 20 at the end.
STEP = make_ops(_row(None, 0.0, 100.0, 60.0), _row(0, 10.0, 15.0, 15.0), _row(0, 55.0, 25.0, 25.0))


def test_calls_lie_in_their_caller_and_its_own_time_between_them():
    made = at_median_times(STEP, _medians(STEP, [30.0, 5.0, 1.0]))
    assert made["start_us"].tolist() == [0.0, 5.0, 25.0]
    assert made["total_time_us"].tolist() == [36.0, 5.0, 1.0]
    assert made["self_time_us"].tolist() == [30.0, 5.0, 1.0]
    assert made["self_time_us"].sum() == made["total_time_us"].iloc[0]


def test_a_call_without_time_of_its_own_in_that_run_has_its_median_at_its_end():
    ops = make_ops(_row(None, 0.0, 40.0, 0.0), _row(0, 0.0, 40.0, 40.0))
    made = at_median_times(ops, _medians(ops, [2.0, 10.0]))
    assert made[["start_us", "total_time_us"]].values.tolist() == [[0.0, 12.0], [0.0, 10.0]]


def test_another_thread_begins_where_it_did_and_its_calls_do_not_overlap():
    worker = [_row(None, 55.0, 5.0, 5.0, thread=1), _row(None, 61.0, 5.0, 5.0, thread=1)]
    ops = pd.concat([STEP, make_ops(*worker).assign(op_id=[3, 4])], ignore_index=True)
    made = at_median_times(ops, _medians(ops, [60.0, 15.0, 50.0, 40.0, 5.0]))
    assert made["start_us"].tolist() == [0.0, 10.0, 55.0, 55.0, 95.0]
    assert made["total_time_us"].tolist() == [125.0, 15.0, 50.0, 40.0, 5.0]


def test_what_a_thread_does_while_its_caller_waits_counts_once():
    ops = make_ops(_row(None, 0.0, 10.0, 2.0), _row(0, 1.0, 8.0, 8.0, thread=1), _row(0, 1.0, 8.0, 8.0))
    ops["self_time_us"] = [0.0, 8.0, 8.0]
    assert at_median_times(ops, _medians(ops, [0.0, 8.0, 8.0]))["total_time_us"].tolist() == [10.0, 8.0, 8.0]


def test_kernels_are_no_part_of_their_caller_and_queue_on_their_stream():
    kernel = {"level": "kernel", "device": "cuda:0", "stream": 7, "thread": 0}
    ops = make_ops(
        _row(None, 0.0, 20.0, 20.0, self_device_time_us=60.0, total_device_time_us=60.0),
        _row(0, 5.0, 30.0, 30.0, total_device_time_us=30.0, **kernel),
        _row(0, 35.0, 30.0, 30.0, total_device_time_us=30.0, **kernel),
    )
    made = at_median_times(ops, _medians(ops, [10.0, 40.0, 20.0], device=[60.0, np.nan, np.nan]))
    assert made["start_us"].tolist() == [0.0, 2.5, 42.5]
    assert made["total_time_us"].tolist() == [10.0, 40.0, 20.0]
    assert made["total_device_time_us"].tolist() == [60.0, 40.0, 20.0]


def test_moments_move_with_the_calls_around_them():
    made = at_median_times(STEP, _medians(STEP, [30.0, 5.0, 1.0]))
    moments = moved(np.array([-1.0, 0.0, 10.0, 17.5, 40.0, 100.0, 103.0]), STEP, made)
    assert moments.tolist() == [-1.0, 0.0, 5.0, 7.5, 17.5, 36.0, 39.0]
