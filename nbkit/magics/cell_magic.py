"""What makes a verb a cell magic: its name, its options, what records and what an empty result says."""

from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from IPython.core.error import UsageError

from nbkit.magics.arguments import MagicParser
from nbkit.trace.trace import Trace


@runtime_checkable
class Repeating(Protocol):
    """A recorder that the code it records may run under several times."""

    def rounds(self) -> Iterator[object]:
        """One item per run that is due."""


def once(options: Namespace) -> bool:
    """False: whatever its options, such a verb runs its cell once."""
    return False


@dataclass(frozen=True)
class CellMagic:
    """One verb; `nbkit.magics.CELL_MAGICS` lists them.

    `record` turns parsed options into the context manager that yields the trace; it raises NbkitError on a value it
    cannot use. `nothing` says in one sentence why a trace holds nothing to show, None where it does. `repeats` says
    whether the options ask for more than one run of the cell; what `record` gives is then Repeating.
    """

    name: str
    parser: MagicParser
    record: Callable[[Namespace], AbstractContextManager[Trace]]
    nothing: Callable[[Trace], str | None]
    repeats: Callable[[Namespace], bool] = once

    def repeats_line(self, options: str) -> bool:
        """Whether the option text asks for more than one run; False if it cannot be read."""
        try:
            return self.repeats(self.parser.parse_line(options))
        except UsageError:
            return False


def why_empty(trace: Trace) -> str:
    """One sentence on why no op is in a trace that left none out by its filters."""
    if error := trace.meta.get("error"):
        return f"No op ran before the cell ended with {error['type']}, so the trace is empty and incomplete."
    if skipped := trace.meta.get("skipped"):
        reasons = ", ".join(f"{count} x {reason}" for reason, count in skipped.items())
        return f"No op was recorded, but some were skipped: {reasons}."
    return "No op ran in this cell, so the trace is empty."
