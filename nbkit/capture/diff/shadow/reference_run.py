"""What the option `against` names: a run beside the step, or one that was recorded before."""

from pathlib import Path

from nbkit.capture.diff.shadow.shadow_run import ShadowRun
from nbkit.capture.diff.shadow.target import target
from nbkit.capture.diff.shadow.trace_run import TraceRun
from nbkit.errors import OptionError
from nbkit.trace.storage import META
from nbkit.trace.trace import Trace


def other_run(against: str | Path | Trace) -> ShadowRun | TraceRun:
    """The run that `against` names. Raises OptionError, or TraceError for a trace that cannot be read."""
    if isinstance(against, Trace):
        return TraceRun(against, str(against.meta.get("name") or "the trace"))
    if not isinstance(against, str | Path):
        raise OptionError(f"against={against!r} is neither a trace nor text; give a device such as 'cpu:float64'.")
    if isinstance(against, Path) or (Path(against) / META).is_file():
        return TraceRun(Trace.load(against), str(against))
    return ShadowRun(target(against))
