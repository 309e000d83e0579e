"""Counts calls of modules in threads of the user's own: a recording sees one thread only."""

from collections.abc import Callable
from threading import Lock, local

from nbkit.capture.raw.running import running


class OtherThreads:
    """Counts the calls that a recording has not recorded, and the threads that they ran in."""

    def __init__(self) -> None:
        self.calls = self.threads = 0
        self._lock = Lock()
        self._met = local()  # the number of a thread that has ended may come back, what is local to it does not

    def note_call(self) -> None:
        """Counts a call of a module in the running thread, unless that thread has a recording of its own."""
        if running():
            return
        is_new = not vars(self._met)
        self._met.is_met = True
        with self._lock:
            self.calls += 1
            self.threads += is_new

    def say(self, skip: Callable[[str, int], None]) -> None:
        """Counts as skipped what was not recorded, with what to do about it."""
        if self.calls:
            threads = "1 other thread" if self.threads == 1 else f"{self.threads:,} other threads"
            skip(
                f"module calls in {threads}, whose ops are not recorded: record inside the thread, or use "
                "optrace(threads='all')",
                self.calls,
            )
