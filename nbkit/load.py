"""load: open any file nbkit can read; the kind is recognised."""

from pathlib import Path

from nbkit.trace import Trace


def load(path: str | Path) -> Trace:
    """The trace in the folder that `Trace.save()` wrote. Raises TraceError if it is absent, damaged or newer."""
    return Trace.load(path)
