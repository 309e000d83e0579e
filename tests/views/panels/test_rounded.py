"""A trace as a report keeps it."""

import numpy as np

from nbkit.views.panels.rounded import rounded, to_digits, to_nanoseconds
from tests.support.fakes import make_ops, make_trace


def test_times_are_whole_nanoseconds() -> None:
    times = np.array([1.23456, -0.0004, np.nan, np.inf, 1e15 + 0.125])
    np.testing.assert_array_equal(to_nanoseconds(times), [1.235, 0.0, np.nan, np.inf, 1e15 + 0.125])


def test_digits_are_those_that_are_shown() -> None:
    values = np.array([1 / 3, -12345.0, 5e-324, -0.0, np.inf, np.nan, np.finfo(np.float64).max])
    kept = to_digits(values, 3)
    np.testing.assert_array_equal(kept, [0.333, -12300.0, 5e-324, 0.0, np.inf, np.nan, 1.79e308])
    assert not np.signbit(kept[3])


def test_the_trace_itself_stays_as_it_is() -> None:
    trace = make_trace(make_ops({"self_time_us": 0.12345}))
    assert rounded(trace).ops["self_time_us"].tolist() == [0.123]
    assert trace.ops["self_time_us"].tolist() == [0.12345]
