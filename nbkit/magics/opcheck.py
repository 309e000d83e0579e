"""`%%opcheck`: find the first op of a cell that makes a NaN, an Inf or loses all precision."""

from nbkit.magics.arguments import verb_parser
from nbkit.magics.cell_magic import CellMagic, why_empty
from nbkit.trace.trace import Trace
from nbkit.verbs.opcheck import OPCHECK as VERB

DESCRIPTION = """\
Find where NaN, Inf and lost precision begin in this cell: forward, backward and optimizer.

The cell runs as it would without this line: same value, output and exception. The trace is shown below the cell's own
output, findings first, and kept as _opcheck, also after an error or an interrupt, then marked incomplete."""


def _nothing(trace: Trace) -> str | None:
    return None if len(trace.ops) else why_empty(trace)


OPCHECK = CellMagic(name=VERB.name, parser=verb_parser(VERB, DESCRIPTION), record=VERB.record, nothing=_nothing)
