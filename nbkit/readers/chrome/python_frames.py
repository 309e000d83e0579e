"""Reads frames of Python in a Chrome trace: they give the ops inside their source lines."""

from array import array

import numpy as np

from nbkit.readers.chrome.columns import integers
from nbkit.readers.chrome.names import user_line
from nbkit.readers.chrome.ranks import Ranks
from nbkit.timeline.events import HOST, MODULE, RUNTIME, Events
from nbkit.timeline.nesting import call_order, depth_levels, inherited, parents


class PythonFrames:
    """Collects frames of the user's code; those of torch and of Python itself are left out."""

    def __init__(self) -> None:
        self._start, self._duration, self._thread, self._position, self._code = (array("q") for _ in range(5))
        self._lines: list[str] = []
        self._codes: dict[str, int] = {}  # per frame text its line, -1 if it is not the user's

    def add(self, frame: str, start: int, duration: int, thread: int, position: int) -> None:
        """Adds a frame "path/file.py(12): function", its time in ns, and how many rows came before."""
        code = self._codes.get(frame)
        if code is None:
            line = user_line(frame)
            code = self._codes[frame] = -1 if line is None else len(self._lines)
            self._lines += [] if line is None else [line]
        if code >= 0:
            for column, value in zip(self._columns(), (start, duration, thread, position, code), strict=True):
                column.append(value)

    def _columns(self) -> "tuple[array[int], ...]":
        return self._start, self._duration, self._thread, self._position, self._code

    def fill_sources(self, events: Events, ranks: Ranks) -> Events:
        """Returns the events, those that have no source line with that of the innermost frame around them."""
        if not self._code:
            return events
        start, duration, thread, position, code = (integers(column) for column in self._columns())
        thread = ranks.threads(thread, position)
        host = np.flatnonzero(np.isin(events.kind, (HOST, MODULE, RUNTIME)))
        start = np.concatenate([start, events.start_ns[host]])
        duration = np.concatenate([duration, events.duration_ns[host]])
        thread = np.concatenate([thread, events.thread[host]])
        order = call_order(start, duration)
        parent = parents(thread[order], start[order], (start + duration)[order])
        frame = inherited(parent, depth_levels(parent), order < len(code))
        source = list(events.texts("source"))
        rows = np.flatnonzero((frame >= 0) & (order >= len(code)))
        for row, line in zip(host[order[rows] - len(code)].tolist(), code[order[frame[rows]]].tolist(), strict=True):
            source[row] = source[row] or self._lines[line]
        events.source = source
        return events
