"""Finds the source lines of ops and named blocks in C++, at a fraction of what Python's calls of torch cost to record.

Without the built recorder there are none.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from nbkit.capture.native.library import library
from nbkit.capture.raw.source import CodeLocation, OpLocation, code_text, location_text
from nbkit.capture.recorder.observed_ops import lend
from nbkit.timeline import HOST, Events

Ints = npt.NDArray[np.int64]


class OpLines:
    """Notes, while installed, the line of each op that is in no other op, and of each named block, of this thread."""

    def __init__(self) -> None:
        self.native: Any | None = library()
        self.is_on = False
        self.noted: tuple[list[str], Ints, list[OpLocation | None]] = ([], np.empty(0, np.int64), [])

    def install(self) -> None:
        if self.native is not None:
            lend(self.native)
            self.is_on = self.native.begin_lines()

    def remove(self) -> None:
        if self.native is not None and self.is_on:
            self.is_on = False
            self.noted = self.native.end_lines()

    def tell_sources(self, events: Events) -> dict[str, str | None]:
        """Writes the lines of the events that have none yet, and returns the text of each line.

        Profiler and C++ saw the same calls in the same order; where they did not, no line is certain.
        """
        names, number, places = self.noted
        rows = _outermost(events, {names[one] for one in np.unique(number).tolist()})
        if len(rows) != len(number) or [events.name[row] for row in rows.tolist()] != [names[one] for one in number]:
            return {}
        sources, own = list(events.texts("source")), list(events.texts("own_source"))
        texts: dict[str, str | None] = {}
        known = {id(place): _line_and_own(place, texts) for place in {id(one): one for one in places}.values()}
        for row, place in zip(rows.tolist(), places, strict=True):
            if sources[row] is None:
                sources[row], own[row] = known[id(place)]
        events.source, events.own_source = sources, own
        return texts


def _line_and_own(place: OpLocation | None, texts: dict[str, str | None]) -> tuple[str | None, str | None]:
    """Returns the line of a place and that of the user's own above it, and writes what is read there into `texts`."""
    lines: list[str | None] = [None, None]
    parts: tuple[CodeLocation | None, ...] = () if place is None else (place[:2], *place[2:])
    for number, part in enumerate(parts):
        if part is not None:
            lines[number] = line = location_text(part)
            texts[line] = code_text(part)
    return lines[0], lines[1]


def _outermost(events: Events, names: set[str]) -> Ints:
    """Returns, in order of time, the blocks and dispatcher calls of the main thread that are in no dispatcher call.

    Those of other names are left out: inductor's fused kernels, which C++ does not take for calls.
    """
    is_block = events.integers("block") == 1
    is_call = events.is_dispatcher_call & (events.kind == HOST)
    rows = np.flatnonzero((is_call | is_block) & (events.thread == events.main_thread))
    rows = rows[np.lexsort((-events.duration_ns[rows], events.start_ns[rows]))]
    end = np.where(is_call[rows], events.start_ns[rows] + events.duration_ns[rows], 0)
    latest = np.maximum.accumulate(np.append(0, end))[:-1]
    is_met = np.array([events.name[row] in names for row in rows.tolist()], dtype=bool)
    return np.asarray(rows[(events.start_ns[rows] >= latest) & is_met])
