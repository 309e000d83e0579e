"""`%%opcheck`: find the first op of a cell that makes a NaN, an Inf or loses all precision."""

from argparse import Namespace
from contextlib import AbstractContextManager

from nbkit.capture.check.opcheck import opcheck
from nbkit.magics.arguments import MagicParser
from nbkit.magics.cell_magic import CellMagic, why_empty
from nbkit.trace import Trace

DESCRIPTION = """\
Find where NaN, Inf and lost precision begin in this cell: forward, backward and optimizer.

The cell runs as it would without this line: same value, output and exception. The trace is shown below the cell's own
output, findings first, and kept as _opcheck, also after an error or an interrupt, then marked incomplete."""


def _parser() -> MagicParser:
    parser = MagicParser("opcheck", DESCRIPTION)
    parser.add_argument("--stop", action="store_true", help="end the cell with an error at the first such op")
    parser.add_argument("--name", metavar="TEXT", help="what the trace is called where it is shown")
    return parser


def _record(options: Namespace) -> AbstractContextManager[Trace]:
    return opcheck(stop=options.stop, name=options.name)


def _nothing(trace: Trace) -> str | None:
    return None if len(trace.ops) else why_empty(trace)


OPCHECK = CellMagic(name="opcheck", parser=_parser(), record=_record, nothing=_nothing)
