"""`%%optrace`: record every op of a cell."""

from nbkit.magics.arguments import verb_parser
from nbkit.magics.cell_magic import CellMagic, why_empty
from nbkit.trace.trace import Trace
from nbkit.verbs.optrace import OPTRACE as VERB

DESCRIPTION = """\
Record every op of this cell: API calls and the aten ops below them, forward, backward and optimizer.

The cell runs as it would without this line: same value, output and exception. The trace is shown below the cell's own
output and kept as _optrace, also after an error or an interrupt, then marked incomplete. A PATTERN is a plain name, a
glob (aten.add*) or re: and a regular expression; several are separated by commas or given by repeating the option.
While the cell awaits, ops of other asyncio tasks of this thread are recorded too."""


def _nothing(trace: Trace) -> str | None:
    if len(trace.ops):
        return None
    if left_out := trace.meta.get("filtered_ops"):
        return f"The filters left out all {left_out} recorded ops; loosen them to see some."
    return why_empty(trace)


OPTRACE = CellMagic(name=VERB.name, parser=verb_parser(VERB, DESCRIPTION), record=VERB.record, nothing=_nothing)
