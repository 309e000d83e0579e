"""`%%opdiff`: run every op of a cell again on a reference and judge what differs."""

from nbkit.magics.arguments import verb_parser
from nbkit.magics.cell_magic import CellMagic, why_empty
from nbkit.trace.trace import Trace
from nbkit.verbs.opdiff import OPDIFF as VERB

DESCRIPTION = """\
Run every op of this cell again on a reference from the same inputs, forward and backward, and judge what differs.

The cell runs as it would without this line: same value, output and exception. The trace is shown below the cell's own
output and kept as _opdiff, its frame `diffs` has a row per compared tensor. A difference is an error if it is larger
than the op's conditioning and dtype allow. A PATTERN is a plain name, a glob (aten.add*) or re: and a regular
expression; several are separated by commas or given by repeating the option."""


def _nothing(trace: Trace) -> str | None:
    if len(trace.diffs):
        return None
    if len(trace.ops) or trace.meta.get("filtered_ops"):
        return "No op was compared: the filters, phases or the kind of the ops left none; see trace.meta['skipped']."
    return why_empty(trace)


OPDIFF = CellMagic(name=VERB.name, parser=verb_parser(VERB, DESCRIPTION), record=VERB.record, nothing=_nothing)
