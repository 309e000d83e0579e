"""CellMagic makes a cell magic of a verb that records."""

from argparse import Namespace
from collections.abc import Iterator
from functools import cached_property
from typing import Protocol, runtime_checkable

from IPython.core.error import UsageError

from nbkit.magics.arguments import MagicParser
from nbkit.verbs.verb import COUNTS, Recorder


@runtime_checkable
class Repeating(Protocol):
    """A recorder that the code it records may run under several times."""

    def rounds(self) -> Iterator[object]:
        """Yields one item per run that is due."""


class CellMagic:
    """One verb as a cell magic; `nbkit.magics.CELL_MAGICS` lists them."""

    def __init__(self, name: str, recorder: Recorder) -> None:
        self.name, self.recorder = name, recorder

    @cached_property
    def parser(self) -> MagicParser:
        """Returns the parser of its options, made at first use: what records is imported for it."""
        return MagicParser(self.name, self.recorder)

    def repeats(self, options: Namespace) -> bool:
        """Tells whether the options ask for more than one run of the cell."""
        return self.recorder.is_repeated and any(getattr(options, count) for count in COUNTS)

    def repeats_line(self, options: str) -> bool:
        """Tells whether the option text asks for more than one run; False if it cannot be read."""
        try:
            return self.repeats(self.parser.parse_line(options))
        except UsageError:
            return False
