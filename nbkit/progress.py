"""Shows a person who waits what is going on: one line on stderr, which goes away at the end."""

import os
import sys
from collections.abc import Callable
from threading import Event, Thread
from time import monotonic
from types import TracebackType
from typing import TextIO

PATIENCE_S, EVERY_S = 2.0, 0.5
# Set to 0 for no progress at all.
SWITCH = "NBKIT_PROGRESS"
# Work inside other work: the innermost one is shown.
_open: list["Progress"] = []


class Progress:
    """Context manager that shows a line from two seconds on, twice a second, to a terminal or a notebook alone.

    `describe` returns what the line says, without the elapsed time; a thread of its own asks it. Nothing is shown
    where the environment has NBKIT_PROGRESS=0.
    """

    def __init__(self, describe: Callable[[], str], stream: TextIO | None = None) -> None:
        self.describe = describe
        self.stream = stream
        self._thread: Thread | None = None

    def __enter__(self) -> "Progress":
        self._started, self._width = monotonic(), 0
        stream = self.stream or sys.stderr
        if os.environ.get(SWITCH) != "0" and is_watched(stream):
            self._done = Event()
            self._thread = Thread(target=self._show, args=(stream, self._done), name="nbkit progress", daemon=True)
            _open.append(self)
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._thread is not None:
            self._done.set()
            self._thread.join()
            self._thread = None
            _open.remove(self)

    def _show(self, stream: TextIO, done: Event) -> None:
        try:
            is_done = done.wait(PATIENCE_S)
            while not is_done:
                if _open[-1] is self:
                    self._write(stream, f"{self.describe()} ({duration_text(monotonic() - self._started)})")
                is_done = done.wait(EVERY_S)
            if self._width:
                self._write(stream, "")
                stream.write("\r")
                stream.flush()
        except (OSError, ValueError):  # the stream was closed: there is nobody to tell
            pass

    def _write(self, stream: TextIO, text: str) -> None:
        stream.write(f"\r{text:<{self._width}}")
        stream.flush()
        self._width = max(self._width, len(text))


def duration_text(seconds: float) -> str:
    """Formats a time that somebody has waited: '12 s', '3 min 05 s'."""
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"


def is_watched(stream: TextIO | None) -> bool:
    """Returns whether what is written to the stream reaches a person: a terminal or a notebook."""
    if stream is None or getattr(stream, "closed", False):
        return False
    return type(stream).__module__.startswith("ipykernel.") or stream.isatty()
