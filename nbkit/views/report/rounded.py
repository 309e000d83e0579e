"""A trace as a report keeps it: times to the nanosecond, statistics and metrics to six digits; all else as it is."""

from typing import Any

import numpy as np
import pandas as pd

from nbkit.trace import Trace
from nbkit.views.report.pack import EXACT, Floats

PER_US = 1000
# Bytes of a float that a report keeps: sign, exponent and twenty bits after the leading one.
KEPT_BYTES = 4
DROPPED_BITS = 8 * (8 - KEPT_BYTES)


def rounded(trace: Trace) -> Trace:
    """A new trace with the rounded frames."""
    ways = {"ops": to_nanoseconds, "tensors": to_six_digits, "diffs": to_six_digits}
    frames = {name: _floats_by(frame, ways[name]) if name in ways else frame for name, frame in trace.frames.items()}
    return Trace(frames, trace.meta, trace.kept)


def to_nanoseconds(values_us: Floats) -> Floats:
    """Microseconds of whole nanoseconds; those too large to tell them apart stay as they are."""
    with np.errstate(all="ignore"):
        whole = np.rint(values_us * PER_US)
        return np.where(np.abs(whole) <= EXACT, whole / PER_US, values_us)


def to_six_digits(values: Floats) -> Floats:
    """Floats whose last four bytes are 0."""
    bits = np.ascontiguousarray(values, np.float64).view(np.int64)
    # Rounds half up; what comes out of a mantissa full of ones rightly runs over into the exponent.
    near = ((bits + (1 << (DROPPED_BITS - 1))) >> DROPPED_BITS << DROPPED_BITS).view(np.float64)
    return np.where(np.isfinite(values) & np.isfinite(near), near, values)


def _floats_by(frame: pd.DataFrame, way: Any) -> pd.DataFrame:
    names = [str(name) for name in frame if frame[name].dtype == np.float64]
    return frame.assign(**{name: way(frame[name].to_numpy()) for name in names})
