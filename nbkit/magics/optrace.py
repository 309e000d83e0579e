"""`%%optrace`: record every op of a cell."""

from argparse import Namespace
from contextlib import AbstractContextManager

from nbkit.capture.optrace import optrace
from nbkit.magics.arguments import MagicParser
from nbkit.magics.cell_magic import CellMagic, why_empty
from nbkit.patterns import split_patterns
from nbkit.trace import Trace

DESCRIPTION = """\
Record every op of this cell: API calls and the aten ops below them, forward, backward and optimizer.

The cell runs as it would without this line: same value, output and exception. The trace is shown below the cell's own
output and kept as _optrace, also after an error or an interrupt, then marked incomplete. A PATTERN is a plain name, a
glob (aten.add*) or re: and a regular expression; several are separated by commas or given by repeating the option.
While the cell awaits, ops of other asyncio tasks of this thread are recorded too."""


def _parser() -> MagicParser:
    parser = MagicParser("optrace", DESCRIPTION)
    for option, meaning in (
        ("--ops", "record only ops that fit"),
        ("--exclude-ops", "leave out ops that fit"),
        ("--modules", "record only ops inside modules that fit, by their named_modules() path"),
        ("--exclude-modules", "leave out ops inside modules that fit"),
    ):
        parser.add_argument(option, action="extend", type=split_patterns, metavar="PATTERN", help=meaning)
    parser.add_argument(
        "--values", metavar="stats", help="stats: also mean, std, min, max, norm, NaN and Inf counts of every tensor"
    )
    parser.add_argument("--name", metavar="TEXT", help="what the trace is called where it is shown")
    return parser


def _record(options: Namespace) -> AbstractContextManager[Trace]:
    return optrace(
        ops=options.ops,
        exclude_ops=options.exclude_ops,
        modules=options.modules,
        exclude_modules=options.exclude_modules,
        values=options.values,
        name=options.name,
    )


def _nothing(trace: Trace) -> str | None:
    if len(trace.ops):
        return None
    if left_out := trace.meta.get("filtered_ops"):
        return f"The filters left out all {left_out} recorded ops; loosen them to see some."
    return why_empty(trace)


OPTRACE = CellMagic(name="optrace", parser=_parser(), record=_record, nothing=_nothing)
