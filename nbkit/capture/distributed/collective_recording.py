"""Records what a process asks of the others during one recording: its calls, their numbers, their waits."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from nbkit.capture.distributed.api_calls import ApiCalls
from nbkit.capture.distributed.clocks import measured_clock
from nbkit.capture.distributed.flight_recorder import Entry, entries_between
from nbkit.capture.distributed.frame import Known, collectives_frame
from nbkit.capture.distributed.process import groups_by_name, process_meta, wall_clock_offset_ns
from nbkit.timeline.events import Ints

FORGOTTEN = (
    "Torch's flight recorder had forgotten the first collectives of this recording when it ended: they have no seq, "
    "and those inside of ops have no row. The environment variable TORCH_FR_BUFFER_SIZE makes it hold more than 2,000."
)
UNNUMBERED = (
    "Collectives have no seq, and those inside of ops no row: torch's flight recorder holds none of them. It is off "
    "where TORCH_FR_BUFFER_SIZE is 0, and for backends that do not write to it."
)


class CollectiveRecording:
    """Records the calls while installed; add_to() makes the frame. `with_ranges` is for torch.profiler's recording."""

    def __init__(self, with_ranges: bool = False) -> None:
        self.api = ApiCalls(with_ranges)
        self.always = with_ranges
        self.offset_ns = wall_clock_offset_ns()
        self.groups = groups_by_name()  # at the end some may be gone
        self.meta = process_meta(0)

    def install(self) -> None:
        """Begins to record; a recording that needs no ranges has nothing to do where there is one process."""
        if self.always or self.meta:
            self.api.install()

    def remove(self) -> None:
        self.api.remove()

    def add_to(
        self,
        frames: dict[str, pd.DataFrame],
        span_ns: tuple[int, int],
        to_us: Callable[[Ints], np.ndarray],
        accumulating: Ints | None = None,
    ) -> dict[str, Any]:
        """Adds the frame of one of several processes, and fills in its ops; returns what belongs into meta.

        `span_ns` is when the recording began and ended, by perf_counter_ns(), of which `to_us` makes times of ops.
        `accumulating` are op_ids of what nodes that add to gradients ran, where no rows of ops tell.
        """
        began_ns = span_ns[0] + self.offset_ns
        meta = process_meta(began_ns) or ({**self.meta, "started_ns": began_ns} if self.meta else {})
        if not meta:
            return {}
        entries, notes = self._entries(began_ns, span_ns[1] + self.offset_ns)
        created = np.array([entry.created_ns - self.offset_ns for entry in entries], dtype=np.int64)
        calls = [call for call in self.api.calls.values() if call.end_ns]
        bounds = np.array([(call.start_ns, call.end_ns) for call in calls], dtype=np.int64).reshape(-1, 2)
        known = Known(
            entries=[*zip(to_us(created).tolist(), entries, strict=True)],
            calls=[*zip(to_us(bounds[:, 0]).tolist(), to_us(bounds[:, 1]).tolist(), calls, strict=True)],
            groups=self.groups | groups_by_name(),
            rank=meta["rank"],
            sees_all=accumulating is None,
        )
        if accumulating is not None:
            known.accumulating = accumulating
        frames["collectives"], frames["ops"] = collectives_frame(frames["ops"], frames["modules"], known)
        if not entries and not frames["collectives"]["is_p2p"].all():
            notes.append(UNNUMBERED)
        return {**meta, **measured_clock(), "notes": notes}

    def _entries(self, start_ns: int, end_ns: int) -> tuple[list[Entry], list[str]]:
        try:
            entries, has_forgotten = entries_between(start_ns, end_ns)
        except Exception as error:  # what torch's recorder writes is no interface that it promises
            return [], [f"Torch's flight recorder could not be read ({type(error).__name__}: {error})."]
        return entries, [FORGOTTEN] if has_forgotten else []
