"""against=TRACE: the step beside a run of it that was recorded before, perhaps elsewhere."""

from contextlib import AbstractContextManager
from typing import Any, Literal

import numpy as np
import pandas as pd

from nbkit.capture.diff.mode import DiffMode
from nbkit.capture.raw.recording import Recording
from nbkit.divergence.runs import run_of
from nbkit.divergence.side_by_side import comparable, first_beginning, notes_on, side_by_side
from nbkit.step.step import Step
from nbkit.trace.trace import Trace, step_of


class TraceRun:
    """Aligns the step with a trace by their ops, and compares the statistics of their values."""

    values: Literal["stats"] = "stats"

    def __init__(self, trace: Trace, text: str) -> None:
        self.run, self.text = comparable(step_of(trace), f"against={text!r}"), text

    def below(self, recording: Recording, above: DiffMode) -> AbstractContextManager[object]:
        """Nothing runs beside the step."""
        return above

    def found(self, diffs: pd.DataFrame, op_ids: np.ndarray) -> tuple[pd.DataFrame, dict[str, Any]]:
        """Diffs as they are, and what meta says of the other run."""
        return diffs, {"against": self.text}

    def completed(
        self, frames: dict[str, pd.DataFrame], meta: dict[str, Any]
    ) -> tuple[dict[str, pd.DataFrame], dict[str, Any]]:
        """The frames with `alignment`, and meta with the op at which the runs diverge."""
        alignment = side_by_side(run_of(Step(frames["ops"], frames["tensors"])), self.run)
        divergence = {"first_divergence": first_beginning(alignment), "notes": [*meta["notes"], *notes_on(alignment)]}
        return {**frames, "alignment": alignment}, {**meta, **divergence}

    def forget(self) -> None:
        """Nothing was kept for the step."""
