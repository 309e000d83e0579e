"""opdiff: run each op of a step again on a reference, and judge what differs."""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Literal, Unpack

import numpy as np
import pandas as pd

from nbkit import units
from nbkit.capture.calls.capturer import KEEP, KEEP_BYTES, CallCapturer
from nbkit.capture.diff.frame import diffs_frame
from nbkit.capture.diff.judge import Judge
from nbkit.capture.diff.mode import DiffMode
from nbkit.capture.diff.modules.observer import ModuleDiffObserver, checked_level
from nbkit.capture.diff.options import Scope, scope
from nbkit.capture.diff.patterns.earlier import name_earlier
from nbkit.capture.diff.rechecks.strides import strides_at_fault
from nbkit.capture.diff.shadow.shadow_run import ShadowRun
from nbkit.capture.diff.shadow.target import target
from nbkit.capture.diff.shadow.trace_run import TraceRun
from nbkit.capture.raw.recording import Recording
from nbkit.capture.recorder.observer import Frames, Meta, Observer
from nbkit.capture.recorder.recorder import Recorder
from nbkit.capture.replay.isolated import isolated
from nbkit.capture.replay.muted_warnings import MutedWarnings
from nbkit.capture.replay.reference import Function, Reference
from nbkit.capture.scope.filters import PhaseFilters, selection_of, with_filters
from nbkit.capture.scope.module_scope import ModuleScope
from nbkit.capture.step.module_calls import ModuleCalls
from nbkit.errors import OptionError
from nbkit.findings.differences import difference_findings, lost_precision
from nbkit.findings.finding import findings_frame, line_texts, with_findings
from nbkit.numerics.noise_ratio import HARMLESS, THRESHOLD
from nbkit.numerics.tolerances import Tolerances
from nbkit.patterns import Patterns
from nbkit.trace.storage import META
from nbkit.trace.trace import Trace


@with_filters
class opdiff(Recorder):  # noqa: N801  a context manager is named like the function it stands for
    """Context manager that runs each op again on a reference from the same inputs; gives a Trace with `diffs`.

    The trace is that of `optrace`, and what runs inside computes the same bits as without it. Every aten op, forward,
    backward and optimizer, is repeated from copies of its inputs taken before it ran; what it returns and what it
    writes to is compared. A difference is an error if it is larger than the op's conditioning and dtype allow (see
    nbkit/numerics/noise_ratio.py), so that no table of tolerances is needed. Random ops are checked by statistics;
    views, metadata and uninitialized memory are not compared and counted in `meta["skipped"]`. The options of ops and
    modules choose rows of `ops` and `diffs`. What is known to be left out while it runs does not run on the reference:
    all but ops named by their API call, and ops that add up gradients.

    With `against`, the whole step also runs on shadows: every tensor has a shadow copy in the reference precision, with
    the same values and the same random draws, and every op that the step runs is run on them as well. `diffs` then
    tells the error that an op injects from the one that its inputs brought, and the op that this goes back to;
    `meta["first_divergence"]` is the first op of the step at fault, `half_precision_lost_at` the first result off by
    more than the root of the eps of the coarsest dtype on the way to it, `largest_growth` the op that multiplied the
    error most, `largest_error` the result that is off most. Where no op is at fault and results are off by a tenth of
    their norm or more, as gradients that underflow to 0, `trace.findings` says so (`lost_precision`). Integers and
    bools are the step's own, so that both runs take the same way; `meta["diverged_integers"]` counts those that came
    out otherwise. Where a shadow cannot follow (memory seen as another dtype, sparse or quantized tensors) it begins
    anew from the step's values, counted in `meta["skipped"]`. An op that is wrong in the other run alone is no fault of
    the step: its error counts as propagated, and `half_precision_lost_at` names the op. The shadows take as much memory
    again as the step, twice as much if they are in float64 and the step in float32.

    Args:
        reference: "cpu" (float64), "cpu:float32", another device such as "cuda:float64", or a function
            `(op, args, kwargs) -> result` that is given copies of the inputs as they are. An op without a float64
            kernel is compared in float32, and its row says so.
        **filters: those of PhaseFilters.
        sample: n compares every n-th call of an op, a share below 1 about so many.
        max_bytes: an op whose inputs take more on the reference is not compared and gets a row that says so.
        tolerances: {op pattern | dtype | (op pattern, dtype) | "default": (atol, rtol)}; where one fits, it decides
            instead of the noise ratio, the more special first.
        threshold: noise ratio above which a difference is an error; that of a correct op is of order 1.
        keep: so many of the first wrong calls are kept in `trace.captured`, with copies of their inputs, results and
            expected values, for the detail of the diff table, `nbkit.call_of` and `nbkit.script_of`; 0 keeps none.
        keep_bytes: what they may take in all; a call that does not fit is not kept, and `meta["captured"]` says so.
        keep_ops: ops of which calls that are right are kept too, as many as wrong ones; none if None.
        against: the other run: "cpu:float64", "cpu:float32", "cpu:bfloat16", "cpu:same" (the step's own dtypes), or
            another device likewise; see above. Or a Trace, or the folder of one, that nbkit.optrace(values="stats")
            recorded elsewhere: the frame `alignment` then puts the ops of both side by side as nbkit.compare_values
            does, and tells where their statistics begin to differ.
        level: "op", or "module": each call of a module is compared as a whole, see below.
        name: what the trace is called where it is shown.

    With `level="module"` a row of `diffs` is a tensor of a module's call: what it returns, inputs and buffers that it
    writes to, and the gradients that the call passes on to its inputs and parameters. The module runs on the reference
    from copies of its own inputs, parameters and buffers, its backward pass from the gradients of its own outputs, so
    that a module at fault is the only mismatch; the step's module stays as it is. What a correct module may be off is
    found by changing the inputs of each op inside by the eps of its dtypes. Modules without modules in them are
    compared; with `modules` those whose own path fits, containers too (`"*"` is all of them). Random modules, such as
    Dropout in training, and others that cannot run twice are counted in `meta["skipped"]`. With `against`, the rows
    also tell how far the step is from the reference run, in which each module gets the reference's inputs. Ops are not
    chosen or kept, and the reference runs on the CPU. The module's code runs once more, with all that it does beside
    computing, such as printing.

    Raises:
        PatternError, OptionError: before anything runs.
    """

    verb = "opdiff"

    def __init__(  # noqa: PLR0913  options of a verb, by keyword only
        self,
        *,
        reference: str | Function = "cpu",
        sample: float = 1,
        max_bytes: int | None = None,
        tolerances: Mapping[Any, tuple[float, float]] | None = None,
        threshold: float = THRESHOLD,
        keep: int = KEEP,
        keep_bytes: int = KEEP_BYTES,
        keep_ops: Patterns = None,
        against: str | Path | Trace | None = None,
        level: Literal["op", "module"] = "op",
        name: str | None = None,
        **filters: Unpack[PhaseFilters],
    ) -> None:
        selection = selection_of(filters)
        observer = OBSERVERS[checked_level(level)](
            scope(selection, filters.get("phases"), sample, max_bytes, threshold),
            Reference(reference),
            Tolerances(tolerances),
            (keep, keep_bytes, keep_ops),
            None if against is None else other_run(against),
        )
        super().__init__(observer, selection=selection, values=observer.values, name=name)


class DiffObserver(Observer):
    """Runs each op again on a reference, perhaps the step on shadows; adds the frame `diffs`."""

    def __init__(
        self,
        scope: Scope,
        reference: Reference,
        tolerances: Tolerances,
        keeping: tuple[int, int, Patterns] = (KEEP, KEEP_BYTES, None),
        against: ShadowRun | TraceRun | None = None,
    ) -> None:
        self.scope, self.reference, self.tolerances = scope, reference, tolerances
        self.keeping, self.against = keeping, against
        CallCapturer(*keeping)  # refuses what it cannot use before anything runs

    @property
    def values(self) -> Literal["stats"] | None:
        """The values that the recording must read for it."""
        return None if self.against is None else self.against.values

    def below(self, recording: Recording, modules: ModuleCalls) -> AbstractContextManager[object]:
        self.recording = recording
        self.judge = Judge(self.tolerances, self.scope.threshold, CallCapturer(*self.keeping))
        self.module_scope = ModuleScope(recording, modules, self.scope.selection)
        self.mode = DiffMode(recording, self.reference, self.judge, self.scope, self.module_scope)
        return self.mode if self.against is None else self.against.below(recording, self.mode)

    def progress(self) -> str:
        return f"{units.counted(self.mode.compared, 'call')} compared"

    def frames(self, trace: Trace, ops: pd.DataFrame, op_ids: np.ndarray) -> tuple[Frames, Meta]:
        with isolated(), MutedWarnings() as muted:
            muted.run(self.judge.finish)
        op_ids = self.mode.rows.op_ids(op_ids)  # by the slots of the mode
        name_earlier(self.judge.rows, lambda slot: int(op_ids[slot]))
        diffs = diffs_frame(self.judge.rows, op_ids, ops, self.scope.phases)
        for reason, count in (+self.mode.skipped).items():
            self.recording.skip(f"not compared: {reason}", count)
        has_row = np.zeros(len(ops) + 1, dtype=bool)  # the last entry answers for -1
        has_row[diffs["op_id"].to_numpy()] = True
        trace.captured, kept = self.judge.capturer.captured_calls(np.where(has_row[op_ids], op_ids, -1))
        self.captured = frozenset(trace.captured)
        with isolated(), MutedWarnings() as muted:
            self.strides = muted.run(lambda: strides_at_fault(trace.captured, diffs, self.scope.threshold))
        meta = {
            "reference": self.reference.text,
            "threshold": self.scope.threshold,
            "compared_ops": self.mode.compared,
            "mismatches": int((~diffs["status"].isin(HARMLESS)).sum()),
            "captured": kept,
            "notes": [*self._notes()],
        }
        if self.against is not None:
            diffs, more = self.against.found(diffs, op_ids)
            meta |= more
        return {"diffs": diffs}, meta

    def completed(self, frames: Frames, meta: Meta) -> tuple[Frames, Meta]:
        if self.against is not None:
            frames, meta = self.against.completed(frames, meta)
        texts = line_texts(frames["lines"])
        known = self.captured, self.strides
        found = difference_findings(frames["diffs"], frames["ops"], texts, self.reference.text, *known)
        frames = with_findings(frames, found)
        off = lost_precision(meta, frames["ops"], texts)
        return with_findings(frames, findings_frame(off)) if off else frames, meta

    def _notes(self) -> Iterator[str]:
        for key in sorted(self.tolerances.unused, key=str):
            yield f"The tolerance for {key!r} met no op."
        if unknown := self.module_scope.unknown:
            yield (
                f"The module of {unknown:,} {'op' if unknown == 1 else 'ops'} was known only after the step: "
                f"they ran on the reference, too, and have rows if it is one that was asked for."
            )

    def forget(self) -> None:
        del self.recording, self.judge, self.mode, self.module_scope
        if self.against is not None:
            self.against.forget()


OBSERVERS: dict[str, type[DiffObserver | ModuleDiffObserver]] = {"op": DiffObserver, "module": ModuleDiffObserver}


def other_run(against: str | Path | Trace) -> ShadowRun | TraceRun:
    """The run that `against` names. Raises OptionError, or TraceError for a trace that cannot be read."""
    if isinstance(against, Trace):
        return TraceRun(against, str(against.meta.get("name") or "the trace"))
    if not isinstance(against, str | Path):
        raise OptionError(f"against={against!r} is neither a trace nor text; give a device such as 'cpu:float64'.")
    if isinstance(against, Path) or (Path(against) / META).is_file():
        return TraceRun(Trace.load(against), str(against))
    return ShadowRun(target(against))
