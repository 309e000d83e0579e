"""What makes a verb a cell magic: its name, its options, what records and what an empty result says."""

from argparse import Namespace
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from nbkit.magics.arguments import MagicParser
from nbkit.trace import Trace


@dataclass(frozen=True)
class CellMagic:
    """One verb; `nbkit.magics.CELL_MAGICS` lists them.

    `record` turns parsed options into the context manager that yields the trace; it raises NbkitError on a value it
    cannot use. `nothing` says in one sentence why a trace holds nothing to show, None where it does.
    """

    name: str
    parser: MagicParser
    record: Callable[[Namespace], AbstractContextManager[Trace]]
    nothing: Callable[[Trace], str | None]
