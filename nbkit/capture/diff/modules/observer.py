"""The observer of opdiff(level="module"): adds `diffs` with a row per tensor of a module's call."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Literal

import numpy as np
import pandas as pd
from torch import Tensor

from nbkit import units
from nbkit.capture.calls.capturer import KEEP, KEEP_BYTES, CallCapturer
from nbkit.capture.diff.frame import diffs_frame
from nbkit.capture.diff.judge import Judge
from nbkit.capture.diff.modules.comparer import ModuleComparer
from nbkit.capture.diff.options import Scope
from nbkit.capture.diff.pair import Row
from nbkit.capture.diff.shadow.mode import ShadowMode
from nbkit.capture.diff.shadow.shadow_run import ShadowRun
from nbkit.capture.diff.shadow.shadows import is_shadowed
from nbkit.capture.diff.shadow.trace_run import TraceRun
from nbkit.capture.raw.recording import Recording
from nbkit.capture.recorder.observer import Frames, Meta, Observer
from nbkit.capture.replay.reference import CPU, Reference
from nbkit.capture.scope.filters import EVERY_PHASE
from nbkit.capture.step.module_calls import ModuleCalls
from nbkit.errors import OptionError, nearest
from nbkit.findings.differences import module_difference_findings
from nbkit.findings.finding import line_texts, with_findings
from nbkit.numerics.noise_ratio import HARMLESS
from nbkit.numerics.tolerances import Tolerances
from nbkit.patterns import Patterns
from nbkit.schema.message import joined
from nbkit.trace.trace import Trace

LEVELS = ("op", "module")


def checked_level(level: object) -> str:
    """Returns the level as it is. Raises OptionError on one that is not known."""
    if level not in LEVELS:
        raise OptionError(f"level={level!r} is not known; {nearest(str(level), LEVELS)}")
    return str(level)


class ModuleDiffObserver(Observer):
    """Runs each module's call again on a reference, forward and backward; adds the frame `diffs`."""

    values: Literal["stats"] | None = None

    def __init__(
        self,
        scope: Scope,
        reference: Reference,
        tolerances: Tolerances,
        keeping: tuple[int, int, Patterns] = (KEEP, KEEP_BYTES, None),
        against: ShadowRun | TraceRun | None = None,
    ) -> None:
        self.scope, self.reference, self.tolerances = scope, reference, tolerances
        self._check(keeping)
        if isinstance(against, TraceRun):
            raise OptionError("level='module' has no use for a trace; give against='cpu:float64', or leave it out.")
        self.target = None if against is None else against.target

    def _check(self, keeping: tuple[int, int, Patterns]) -> None:
        selection = self.scope.selection
        if selection.ops is not None or selection.exclude_ops is not None or selection.backward:
            raise OptionError("level='module' compares modules, not ops; choose them by modules= and exclude_modules=.")
        if self.reference.function is not None or self.reference.device != CPU:
            raise OptionError(
                f"reference={self.reference.text!r} runs no modules; give 'cpu' or 'cpu:float32' with level='module'."
            )
        if not self.scope.phases & {"forward", "backward"}:
            raise OptionError("level='module' has rows of the phases forward and backward; name one of them, or none.")
        if keeping not in ((KEEP, KEEP_BYTES, None), (0, KEEP_BYTES, None)):
            raise OptionError("level='module' captures no calls; leave out keep=, keep_bytes= and keep_ops=.")

    @contextmanager
    def below(self, recording: Recording, modules: ModuleCalls) -> Iterator[None]:
        self.recording = recording
        self.judge = Judge(self.tolerances, self.scope.threshold, CallCapturer(0))
        self.shadow = None if self.target is None else ShadowMode(recording, self.target)
        self.comparer = ModuleComparer(recording, self.reference, self.judge, self.scope, self._shadow_of)
        modules.around = self.comparer
        with ExitStack() as stack:
            stack.enter_context(self.comparer.thread)
            stack.callback(self.comparer.finish)
            if self.shadow is not None:
                stack.enter_context(self.shadow)
            yield

    def _shadow_of(self, tensor: Tensor) -> Tensor | None:
        """Returns what the other run has for a tensor of the step, as it is now."""
        if self.shadow is None or not is_shadowed(tensor):
            return None
        return self.shadow.shadows.of(tensor).detach().clone()

    def progress(self) -> str:
        return f"{units.counted(self.comparer.compared, 'module call')} compared"

    def frames(self, trace: Trace, ops: pd.DataFrame, op_ids: np.ndarray) -> tuple[Frames, Meta]:
        self.comparer.thread.run(self.judge.finish)
        placed = [(_placed(row, op_ids), (row["slot"], row["module"])) for row in self.judge.rows]
        rows = [row for row, _ in placed if row is not None]
        without_ops = len({call for row, call in placed if row is None})
        self.comparer.skipped["modules that run no op"] += without_ops
        diffs = diffs_frame(rows, op_ids, ops, EVERY_PHASE, from_ops=())
        for reason, count in (+self.comparer.skipped).items():
            self.recording.skip(f"not compared: {reason}", count)
        meta: dict[str, Any] = {
            "level": "module",
            "reference": self.reference.text,
            "threshold": self.scope.threshold,
            "compared_modules": self.comparer.compared - without_ops,
            "mismatches": int((~diffs["status"].isin(HARMLESS)).sum()),
            "notes": [f"The tolerance for {key!r} met no module." for key in sorted(self.tolerances.unused, key=str)],
        }
        if self.target is not None:
            meta["against"] = self.target.text
        return {"diffs": diffs}, meta

    def completed(self, frames: Frames, meta: Meta) -> tuple[Frames, Meta]:
        texts = line_texts(frames["lines"])
        found = module_difference_findings(frames["diffs"], frames["ops"], texts, self.reference.text)
        return with_findings(frames, found), meta

    def forget(self) -> None:
        self.comparer.thread.close()
        del self.recording, self.judge, self.comparer, self.shadow


def _placed(row: Row, op_ids: np.ndarray) -> Row | None:
    """Returns the row at the first op of its call that is in `ops`, named; None if there is none."""
    start = row["slot"]
    kept = np.flatnonzero(op_ids[start : row["end"]] >= 0)
    if not len(kept):
        return None
    message = joined("; ", [part for part in (row.get("named"), row.get("message")) if part])
    return row | {"slot": (start + int(kept[0])), "message": message or None}
