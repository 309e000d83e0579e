"""Reads frames of Python in a Chrome trace: they give the ops inside their source lines."""

from array import array

import numpy as np

from nbkit.readers.chrome.columns import integers
from nbkit.readers.chrome.names import user_line
from nbkit.timeline.events import HOST, MODULE, RUNTIME, Events
from nbkit.timeline.nesting import call_order, depth_levels, inherited, parents


class PythonFrames:
    """Collects frames of the user's code; those of torch and of Python itself are left out."""

    def __init__(self) -> None:
        self._start, self._duration, self._thread, self._code = array("q"), array("q"), array("q"), array("q")
        self._lines: list[str] = []
        self._codes: dict[str, int] = {}  # per frame text its line, -1 if it is not the user's

    def add(self, frame: str, start: int, duration: int, thread: int) -> None:
        """Adds a frame "path/file.py(12): function" and its time in ns."""
        code = self._codes.get(frame)
        if code is None:
            line = user_line(frame)
            code = self._codes[frame] = -1 if line is None else len(self._lines)
            self._lines += [] if line is None else [line]
        if code >= 0:
            for column, value in zip(self._columns(), (start, duration, thread, code), strict=True):
                column.append(value)

    def _columns(self) -> "tuple[array[int], ...]":
        return self._start, self._duration, self._thread, self._code

    def fill_sources(self, events: Events) -> Events:
        """Returns the events, those that have no source line with that of the innermost frame around them."""
        if not self._code:
            return events
        start, duration, thread, code = (integers(column) for column in self._columns())
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
