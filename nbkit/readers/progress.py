"""Shows one line of progress on stderr while a large file is read."""

import sys
from time import monotonic
from typing import TextIO

PATIENCE_S, EVERY_S = 1.0, 0.2
MEGABYTE = 1e6


class Progress:
    """Says how far reading `name` has come: to a person only, and not before a second has passed."""

    def __init__(self, name: str, total_bytes: int, stream: TextIO | None = None) -> None:
        self.name = name
        self.total_bytes = total_bytes
        self.stream = sys.stderr if stream is None else stream
        self._started = monotonic()
        self._next = self._started + PATIENCE_S if is_watched(self.stream) else float("inf")
        self._width = 0

    def update(self, done_bytes: int) -> None:
        """Notes that `done_bytes` of the file have been read."""
        now = monotonic()
        if now < self._next:
            return
        self._next = now + EVERY_S
        share = done_bytes / self.total_bytes if self.total_bytes else 1.0
        speed = done_bytes / MEGABYTE / max(now - self._started, EVERY_S)
        total = self.total_bytes / MEGABYTE
        self._write(f"reading {self.name}: {share:.0%} of {total:,.0f} MB, {speed:.0f} MB/s")

    def close(self) -> None:
        """Takes the line away again."""
        if self._width:
            self._write("")
            self.stream.write("\r")
            self.stream.flush()
            self._width = 0

    def _write(self, text: str) -> None:
        self.stream.write(f"\r{text:<{self._width}}")
        self.stream.flush()
        self._width = max(self._width, len(text))


def is_watched(stream: TextIO) -> bool:
    """Returns whether what is written to the stream reaches a person: a terminal or a notebook."""
    return type(stream).__module__.startswith("ipykernel.") or stream.isatty()
