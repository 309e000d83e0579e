"""A trace as a report keeps it."""

import numpy as np

from nbkit.views.report.rounded import rounded, to_nanoseconds, to_six_digits
from tests.fakes import make_ops, make_trace


def test_times_are_whole_nanoseconds() -> None:
    times = np.array([1.23456, -0.0004, np.nan, np.inf, 1e15 + 0.125])
    np.testing.assert_array_equal(to_nanoseconds(times), [1.235, 0.0, np.nan, np.inf, 1e15 + 0.125])


def test_metrics_keep_six_digits_over_the_whole_range() -> None:
    values = np.array([1 / 3, -1e300, 5e-320, 0.0, 1.0, np.inf, np.nan, np.finfo(np.float64).max])
    kept = to_six_digits(values)
    np.testing.assert_allclose(kept[:2], values[:2], rtol=5e-7)
    assert (np.ascontiguousarray(kept[:6]).view(np.int64) & 0xFFFFFFFF).tolist() == [0] * 6
    np.testing.assert_array_equal(kept[3:], values[3:])


def test_the_trace_itself_stays_as_it_is() -> None:
    trace = make_trace(make_ops({"self_time_us": 0.12345}))
    assert rounded(trace).ops["self_time_us"].tolist() == [0.123]
    assert trace.ops["self_time_us"].tolist() == [0.12345]
