"""Shows a person who waits what is going on: one line in a terminal or a display in a notebook, away at the end."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread, local
from time import monotonic
from types import TracebackType
from typing import Any, TextIO
from uuid import uuid4

PATIENCE_S, EVERY_S = 2.0, 0.5
# How much must be done before the time that is left is told.
LEAST_DONE, LEAST_S = 0.02, 2.0
# Set to 0 for no progress at all.
SWITCH = "NBKIT_PROGRESS"
# Work inside other work: the innermost one is shown, or the outermost that tells the whole.
_open: list["Progress"] = []
_here = local()  # is_silent


@contextmanager
def no_progress() -> Iterator[None]:
    """Has work that begins inside, in this thread, show no line, until its end."""
    before, _here.is_silent = getattr(_here, "is_silent", False), True
    try:
        yield
    finally:
        _here.is_silent = before


class Progress:
    """Context manager that shows a line from two seconds on, twice a second, to a terminal or a notebook alone.

    `describe` returns what the line says, without times; a thread of its own asks it. `done` returns how much of the
    work is done, 0..1, where that is known: the line then says what time is left. One that `tells_whole` is shown in
    place of work inside it. Nothing is shown where the environment has NBKIT_PROGRESS=0.
    """

    def __init__(
        self,
        describe: Callable[[], str],
        stream: TextIO | None = None,
        done: Callable[[], float | None] = lambda: None,
        tells_whole: bool = False,
    ) -> None:
        self.describe, self.done, self.tells_whole = describe, done, tells_whole
        self.stream = stream
        self._thread: Thread | None = None

    def __enter__(self) -> "Progress":
        self._started = monotonic()
        stream = self.stream or sys.stderr
        if os.environ.get(SWITCH) != "0" and is_watched(stream) and not getattr(_here, "is_silent", False):
            line = NotebookLine(stream) if _is_notebook(stream) else TerminalLine(stream)
            self._ended = Event()
            self._thread = Thread(target=self._show, args=(line, self._ended), name="nbkit progress", daemon=True)
            _open.append(self)
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._thread is not None:
            self._ended.set()
            try:
                self._thread.join()
            finally:
                self._thread = None
                _open.remove(self)

    def _show(self, line: "TerminalLine | NotebookLine", ended: Event) -> None:
        try:
            is_ended = ended.wait(PATIENCE_S)
            while not is_ended:
                shown = next((one for one in [*_open] if one.tells_whole), _open[-1])
                if shown is self and (text := self._text()):
                    line.write(text)
                is_ended = ended.wait(EVERY_S)
            line.clear()
        except (OSError, ValueError):  # the stream was closed: there is nobody to tell
            pass

    def _text(self) -> str:
        """Returns the line; empty while what it speaks of is being changed by the thread that works."""
        try:
            return f"{self.describe()} ({self._times()})"
        except Exception:
            return ""

    def _times(self) -> str:
        elapsed, done = monotonic() - self._started, self.done()
        if done is None or not LEAST_DONE <= done <= 1 or elapsed < LEAST_S:
            return duration_text(elapsed)
        return f"{duration_text(elapsed)}, about {duration_text(elapsed * (1 - done) / done)} left"


class TerminalLine:
    """Writes a line over the one before it."""

    def __init__(self, stream: TextIO) -> None:
        self.stream, self.width = stream, 0

    def write(self, text: str) -> None:
        self.stream.write(f"\r{text:<{self.width}}")
        self.stream.flush()
        self.width = max(self.width, len(text))

    def clear(self) -> None:
        if self.width:
            self.write("")
            self.stream.write("\r")
            self.stream.flush()


class NotebookLine:
    """Shows a line as one display of the running cell, without IPython, which a trace can be read without.

    What goes to stderr would stay as an empty band; a display without data takes no place.
    """

    def __init__(self, stream: Any) -> None:
        self.stream, self.kind = stream, "display_data"
        self.display = {"display_id": uuid4().hex}
        # Of the cell that began the work: the line is written in another thread.
        self.cell = stream.parent_header

    def write(self, text: str) -> None:
        self._send({"text/plain": text})

    def clear(self) -> None:
        if self.kind != "display_data":
            self._send({})

    def _send(self, data: dict[str, str]) -> None:
        content = {"data": data, "metadata": {}, "transient": self.display}
        self.stream.session.send(self.stream.pub_thread, self.kind, content, parent=self.cell)
        self.kind = "update_display_data"


def duration_text(seconds: float) -> str:
    """Formats a time that somebody has waited: '12 s', '3 min 05 s'."""
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"


def is_watched(stream: TextIO | None) -> bool:
    """Returns whether what is written to the stream reaches a person: a terminal or a notebook."""
    if stream is None or getattr(stream, "closed", False):
        return False
    return _is_notebook(stream) or stream.isatty()


def _is_notebook(stream: TextIO) -> bool:
    return type(stream).__module__.startswith("ipykernel.")
