"""`%%optime`: time every op of a cell with the profiler's own clock."""

from argparse import Namespace

from nbkit.magics.arguments import MagicParser, verb_parser
from nbkit.magics.cell_magic import CellMagic, why_empty
from nbkit.trace.trace import Trace
from nbkit.verbs.optime import OPTIME as VERB
from nbkit.verbs.parser import whole_number

DESCRIPTION = """\
Where the time and memory of this cell go: modules, ops, autograd nodes and, on a device, kernels, on one timeline.

The cell runs as it would without this line: same value, output and exception. The trace is shown below the cell's own
output and kept as _optime, also after an error or an interrupt, then marked incomplete. With -w or -r the cell's code
runs several times, side effects and output too; the value is that of the last run, an error ends all. The run of
median time is shown, the others are in the frames timings and samples."""


def _parser() -> MagicParser:
    parser = verb_parser(VERB, DESCRIPTION)
    for short, option, meaning in (
        ("-w", "--warmup", "run the cell N times before recording; off by default: a cell may have side effects"),
        ("-r", "--repeats", "record N runs of the cell instead of one; off by default for the same reason"),
    ):
        parser.add_argument(short, option, type=whole_number(0), default=0, metavar="N", help=meaning)
    return parser


def _repeats(options: Namespace) -> bool:
    return bool(options.warmup or options.repeats)


def _nothing(trace: Trace) -> str | None:
    # The step itself is always a row; a block that the user named is worth showing even if no op ran in it.
    if len(trace.ops) > 1:
        return None
    if len(trace.ops) == 0 and (error := trace.meta.get("error")):
        return f"The cell ended with {error['type']} while it warmed up, so nothing was recorded."
    return why_empty(trace)


OPTIME = CellMagic(name=VERB.name, parser=_parser(), record=VERB.record, nothing=_nothing, repeats=_repeats)
