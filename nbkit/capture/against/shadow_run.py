"""against="cpu:float64": the step beside its shadow, the same step in another precision or on another device."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pandas as pd

from nbkit.capture.against.errors import ErrorLog
from nbkit.capture.against.mode import ShadowMode
from nbkit.capture.against.target import Target
from nbkit.capture.diff.mode import DiffMode
from nbkit.capture.recording import OP_FIELDS, Recording
from nbkit.parting.milestones import milestones
from nbkit.parting.origins import origins
from nbkit.schema import DIFFS

KEYS = ["op_id", "role", "position"]
ERRORS = ["injected_error", "inherited_error", "total_error"]


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
        slots = np.array([one.slot // OP_FIELDS for one in self.log.found], dtype=np.int64)
        columns = {
            "op_id": op_ids[slots] if len(slots) else slots,
            "role": [one.role for one in self.log.found],
            "position": [one.position for one in self.log.found],
            **{name: np.array([one[3 + n] for one in self.log.found], dtype=float) for n, name in enumerate(ERRORS)},
        }
        errors = pd.DataFrame(columns).drop_duplicates(KEYS)
        known = diffs[KEYS].merge(errors, on=KEYS, how="left")
        for reason, count in (self.mode.shadows.restarts + self.mode.skipped).items():
            self.recording.skip(f"shadow: {reason}", count)
        meta = {"against": self.target.text, "followed_ops": self.mode.followed, "parted_integers": self.mode.parted}
        return DIFFS.check(diffs.assign(**{name: known[name].to_numpy() for name in ERRORS})), meta

    def completed(
        self, frames: dict[str, pd.DataFrame], meta: dict[str, Any]
    ) -> tuple[dict[str, pd.DataFrame], dict[str, Any]]:
        """The frames with classes of the errors, and meta with the op at which the runs part."""
        diffs = frames["diffs"]
        found = origins(diffs, frames["tensors"])
        classes = {
            "error_class": pd.Series([one.error_class for one in found], dtype="str"),
            "origin_op_id": pd.Series([one.origin_op_id for one in found], dtype="Int64"),
        }
        notes = [*meta["notes"], *self._notes()]
        parted = milestones(diffs, frames["ops"], found)
        return {**frames, "diffs": DIFFS.check(diffs.assign(**classes))}, {**meta, **parted, "notes": notes}

    def forget(self) -> None:
        """Let go of all shadows."""
        del self.recording, self.mode, self.log

    def _notes(self) -> Iterator[str]:
        if restarts := sum(self.mode.shadows.restarts.values()):
            yield (
                f"The shadow began anew from the step's values {restarts:,} times: what was inherited until there is "
                f"not seen after it."
            )
        if self.mode.parted:
            yield (
                f"{self.mode.parted:,} results of integers or bools differ in the shadow, which goes on with the "
                f"step's own."
            )
