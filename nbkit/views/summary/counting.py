"""Selects the rows of `ops` that the totals of a trace count."""

import pandas as pd

from nbkit.analysis.time.times import computing_ops, host_ops, self_by_phase
from nbkit.schema import OPS
from nbkit.trace.trace import Trace

# Levels that only a timeline has; there every row's self time is a piece of the thread's time, Python's included.
TIMELINE_LEVELS = ("range", "module")


def counted_ops(ops: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """Returns the rows whose self times add up to the whole, and what they are called.

    Of a timeline all rows of the host, so that modules and phases hold what Python did between the ops too; of other
    traces the aten ops, if there are any. Work on a device runs beside the host and is not added to it.
    """
    if is_timeline(ops):
        return host_ops(ops), "calls"
    computing = computing_ops(ops)
    return computing, "aten ops" if len(computing) < len(ops) else "ops"


def recorded_too(trace: Trace) -> set[object]:
    """Returns the verbs that recorded steps of an audit of a script, whose frames are not all in its trace."""
    return {one.get("verb") for one in trace.meta.get("recordings", [])}


def is_timeline(ops: pd.DataFrame) -> bool:
    """Tells whether the ops come from a profiler's timeline, with modules and named ranges as rows."""
    return bool(OPS.check(ops)["level"].isin(TIMELINE_LEVELS).any())


def phases_us(trace: Trace) -> dict[str, float]:
    """Returns the time of each phase: opdoctor knows that of the whole step, of which its ops are a part."""
    if known := (trace.meta.get("step") or {}).get("phases"):
        return dict(known)
    phases = self_by_phase(trace.ops if is_timeline(trace.ops) else computing_ops(trace.ops))
    return dict(zip(phases["phase"].astype(str), phases["self_time_us"].astype(float), strict=True))
