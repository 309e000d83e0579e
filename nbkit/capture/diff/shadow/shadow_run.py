"""against="cpu:float64": the step beside its shadow, the same step in another precision or on another device."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pandas as pd

from nbkit.capture.diff.mode import DiffMode
from nbkit.capture.diff.shadow.errors import ErrorLog, Errors
from nbkit.capture.diff.shadow.mode import ShadowMode
from nbkit.capture.diff.shadow.target import Target
from nbkit.capture.raw.recording import Recording
from nbkit.divergence.milestones import milestones
from nbkit.divergence.origins import origins
from nbkit.schema import DIFFS, TEXT

KEYS = ["op_id", "role", "position"]
ERRORS = {f"{name}_error": Errors._fields.index(name) for name in ("local", "propagated", "total")}
# Of a row that was not compared with a reference, such as that of a random op.
NOTHING = Errors(-1, "", -1)


class ShadowRun:
    """Runs the shadow while the step is recorded, and completes the frames with what it showed."""

    values = None

    def __init__(self, target: Target) -> None:
        self.target = target

    @contextmanager
    def below(self, recording: Recording, above: DiffMode) -> Iterator[None]:
        """Inside, the mode that compares ops runs with the one that follows the step below it."""
        self.recording, self.mode = recording, ShadowMode(recording, self.target)
        self.log = ErrorLog(self.mode)
        above.on_compared = self.log.note
        with self.mode, above:
            yield

    def found(self, diffs: pd.DataFrame, op_ids: np.ndarray) -> tuple[pd.DataFrame, dict[str, Any]]:
        """Diffs with the errors against the shadow, and what meta says of it."""
        slots = np.array([compared.slot for compared in self.log.errors], dtype=np.int64)
        owners = op_ids[slots].tolist() if len(slots) else []
        log = {
            (op_id, compared.role, compared.position): compared
            for op_id, compared in zip(owners, self.log.errors, strict=True)
        }
        keys = zip(*(diffs[name].tolist() for name in KEYS), strict=True)
        known = [log.get(key, NOTHING) for key in keys]
        self.is_noise = np.array([compared.is_noise for compared in known], dtype=bool)
        for reason, count in self.mode.shadows.restarts.items():
            self.recording.skip(f"shadow began anew: {reason}", count)
        for reason, count in self.mode.skipped.items():
            self.recording.skip(f"shadow in a narrower dtype: {reason}", count)
        meta = {
            "against": self.target.text,
            "followed_ops": self.mode.followed,
            "diverged_integers": self.mode.diverged,
        }
        errors = {
            name: np.array([compared[index] for compared in known], dtype=np.float64) for name, index in ERRORS.items()
        }
        return DIFFS.check(diffs.assign(**errors)), meta

    def completed(
        self, frames: dict[str, pd.DataFrame], meta: dict[str, Any]
    ) -> tuple[dict[str, pd.DataFrame], dict[str, Any]]:
        """The frames with classes of the errors, and meta with the op at which the runs diverge."""
        diffs = frames["diffs"]
        rows = origins(diffs, frames["tensors"])
        classes = {
            "error_class": pd.Series([origin.error_class for origin in rows], dtype=TEXT),
            "origin_op_id": pd.Series([origin.origin_op_id for origin in rows], dtype="Int64"),
        }
        notes = [*meta["notes"], *self._notes()]
        diverged = milestones(diffs, frames["ops"], rows, self.is_noise)
        return {**frames, "diffs": DIFFS.check(diffs.assign(**classes))}, {**meta, **diverged, "notes": notes}

    def forget(self) -> None:
        """Let go of all shadows."""
        del self.recording, self.mode, self.log

    def _notes(self) -> Iterator[str]:
        if restarts := sum(self.mode.shadows.restarts.values()):
            places = f"{restarts:,} {'place' if restarts == 1 else 'places'}"
            yield (
                f"The shadow began anew from the step's values at {places}: what was propagated until there is not "
                f"seen after it."
            )
        if diverged := self.mode.diverged:
            what = "result" if diverged == 1 else "results"
            yield f"{diverged:,} {what} of integers or bools came out otherwise in the shadow; it takes the step's."
