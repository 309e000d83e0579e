"""Tells which calls of a trace have their values, and why others have not."""

from nbkit.errors import OptionError
from nbkit.numerics.noise_ratio import HARMLESS
from nbkit.trace.captured_values import CapturedCall
from nbkit.trace.checks import checked_op_id, checked_trace
from nbkit.trace.trace import Trace


def captured_call(trace: Trace, op_id: int) -> CapturedCall:
    """Returns the captured values of an op. Raises OptionError with the reason if there are none."""
    if checked_op_id(checked_trace(trace), op_id) not in trace.captured:
        raise OptionError(f"The values of op {op_id} were not captured: {why_not_captured(trace, op_id)}.")
    return trace.captured[op_id]


def why_not_captured(trace: Trace, op_id: int) -> str:
    """Returns why there are no values of an op, and which option would keep them."""
    captured = trace.meta.get("captured")
    if "captures" in trace.frames:
        return "those of opcapture are in its folder; give that, and the call's record of captures, to nbkit.call_of"
    if captured is None:
        return "only nbkit.opdiff keeps values"
    if not trace.captured and captured["calls"]:
        return "the trace was saved without its values; save it with values='captured'"
    if reason := captured["not_captured"].get(str(op_id)):
        return f"{reason}; a larger keep_bytes makes room" if "keep_bytes" in reason else reason
    rows = trace.diffs[trace.diffs["op_id"] == op_id]
    if rows["status"].isin(HARMLESS).all():
        name = rows["op"].iloc[0] if len(rows) else trace.ops["op"].iloc[op_id]
        return f"it is not a mismatch; record with keep_ops={name!r} to keep calls of this op all the same"
    if rows["message"].str.startswith("random").any():
        return "random ops draw other numbers when they run again"
    return f"the first {captured['keep']} mismatched calls are captured; record with a larger keep= for more"
