"""Rounds a trace for a report: times to the nanosecond, other floats to the digits that are shown of them."""

from collections.abc import Callable
from functools import partial

import numpy as np
import pandas as pd

from nbkit.trace.trace import Trace
from nbkit.views.panels.pack import EXACT, Floats

PER_US = 1000
# Digits that the op table shows of a statistic, and the diff table of a metric.
STATISTIC_DIGITS = 4
METRIC_DIGITS = 3
# What a float can hold rounds up to what it cannot.
LARGEST = 1.79e308


def rounded(trace: Trace) -> Trace:
    """Returns a new trace with the rounded frames."""
    ways: dict[str, Callable[[Floats], Floats]] = {
        "ops": to_nanoseconds,
        "tensors": partial(to_digits, digits=STATISTIC_DIGITS),
        "diffs": partial(to_digits, digits=METRIC_DIGITS),
    }
    frames = {name: _floats_by(frame, ways[name]) if name in ways else frame for name, frame in trace.frames.items()}
    return Trace(frames, trace.meta, trace.captured)


def to_nanoseconds(values_us: Floats) -> Floats:
    """Rounds microseconds to whole nanoseconds; those too large to tell them apart stay as they are."""
    with np.errstate(all="ignore"):
        whole = np.rint(values_us * PER_US)
        return np.where(np.abs(whole) <= EXACT, whole / PER_US, values_us)


def to_digits(values: Floats, digits: int) -> Floats:
    """Rounds floats to so many decimal digits, in which they read the same; -0 becomes 0."""
    different, rows = np.unique(values, return_inverse=True)
    near = np.array([float(f"{value:.{digits}g}") for value in different.tolist()], np.float64)
    is_beyond = np.isinf(near) & np.isfinite(different)
    rounded: Floats = (np.where(is_beyond, np.copysign(LARGEST, different), near) + 0.0)[rows]
    return rounded


def _floats_by(frame: pd.DataFrame, way: Callable[[Floats], Floats]) -> pd.DataFrame:
    names = [str(name) for name in frame if frame[name].dtype == np.float64]
    return frame.assign(**{name: way(frame[name].to_numpy()) for name in names})
