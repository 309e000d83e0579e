"""Runs chosen ops of a step on the CPU (opfallback)."""

from typing import Any, Unpack

import numpy as np
import pandas as pd

from nbkit import units
from nbkit.capture.calls.capturer import KEEP_BYTES
from nbkit.capture.operators.both_outputs import BothOutputs
from nbkit.capture.operators.elsewhere import CPU, Elsewhere, NotRunError
from nbkit.capture.operators.intercept import Intercepted, Interceptor
from nbkit.capture.recorder.observer import Frames, Meta
from nbkit.capture.recorder.recorder import Recorder
from nbkit.capture.replay.isolated import timed_isolated
from nbkit.capture.scope.filters import CallFilters, with_filters
from nbkit.schema import REPLACED
from nbkit.trace.trace import Trace


@with_filters
class opfallback(Recorder):  # noqa: N801  a context manager is named like the function it stands for
    """Runs chosen ops of a step on the CPU inside it, as a context manager; gives a Trace with `replaced`.

    The first way to try a fix: if a step is right with an op on the CPU and wrong without, the device's kernel of that
    op is at fault. Forward, backward and optimizer ops run from copies of their inputs; what they return and what they
    write to comes back to the device with dtype, strides, aliases, autograd graph and version counters as if the device
    had computed it. An op whose dtype has no kernel on the CPU runs in float32 there, and its row says so. Views,
    metadata, uninitialized memory and collectives have nothing to compute and stay; so do random ops of a device with a
    generator of its own, whose numbers the CPU does not draw. All that stayed is counted in `meta["skipped"]`.

    With `keep` the first calls also run on their own device, from copies of what they read. `trace.captured` has both
    results by op_id: of `nbkit.call_of(trace, op_id).results` `actual` is the device's, `expected` the CPU's, which the
    step got. Random ops, which would draw other numbers, are not kept.

    Args:
        keep: so many calls are kept with both results; 0 keeps none.
        keep_bytes: what they may take in all; a call that does not fit is not kept, and `meta["captured"]` says so.
        **filters: those of CallFilters.
        name: what the trace is called where it is shown.

    Raises:
        PatternError, OptionError: before anything runs.
    """

    verb = "opfallback"

    def __init__(
        self,
        *,
        keep: int = 0,
        keep_bytes: int = KEEP_BYTES,
        name: str | None = None,
        **filters: Unpack[CallFilters],
    ) -> None:
        both = BothOutputs(keep, keep_bytes)
        super().__init__(Replacing(Elsewhere(CPU, {}), "cpu", filters, both if keep else None), name=name)


class Replacing(Interceptor):
    """Runs chosen calls elsewhere; adds the frame `replaced`, which says so with the text `ran`."""

    def __init__(self, elsewhere: Elsewhere, ran: str, filters: CallFilters, both: BothOutputs | None = None) -> None:
        super().__init__(filters)
        self.elsewhere, self.ran, self.both = elsewhere, ran, both
        self.rows: list[tuple[int, int, str | None, str]] = []  # seen, number, message, what it ran in

    def skipped(self, reason: str) -> str:
        return f"not replaced: {reason}"

    def refuses(self, call: Intercepted) -> str | None:
        return self.elsewhere.refuses(call)

    def run(self, call: Intercepted) -> Any:
        reason: str | None = None

        def tell(error: Exception) -> None:
            nonlocal reason
            reason = str(error) if isinstance(error, NotRunError) else f"{type(error).__name__}: {error}"

        # Warnings are the step's own: the op runs in place of the step's.
        result = timed_isolated(self.recording, lambda: (self._ran(call),), tell)
        if result is None:
            known = "views" if reason == "views" else f"{call.traits.name} does not run there"
            call.mode.skipped[known] += 1
            return call.run()
        out, message = result[0]
        self.rows.append((call.seen, call.number, message, self.ran_in(call, is_widened=message is not None)))
        return out

    def _ran(self, call: Intercepted) -> tuple[Any, str | None]:
        copies = None if self.both is None else self.both.before(call)
        out, message = self.elsewhere.run(call)
        if self.both is not None:
            self.both.after(copies, call, out)
        return out, message

    def ran_in(self, call: Intercepted, is_widened: bool) -> str:
        """Returns where, or in which dtype, a call ran; `is_widened` where only float32 had a kernel."""
        return self.ran

    def progress(self) -> str:
        return f"{units.counted(len(self.rows), 'call')} replaced"

    def frames(self, trace: Trace, ops: pd.DataFrame, op_ids: np.ndarray) -> tuple[Frames, Meta]:
        super().frames(trace, ops, op_ids)
        seen, calls, messages, ran = zip(*self.rows, strict=True) if self.rows else ((),) * 4
        columns = {"call": calls, "ran": ran, "message": messages}
        frame = self.frame(REPLACED, seen, ops, op_ids, columns)
        meta: Meta = {"replaced_ops": len(frame)}
        if self.both is not None:
            trace.captured, meta["captured"] = self.both.captured(self.mode.rows.op_ids(op_ids))
        return {"replaced": frame}, meta
