"""opreport from a line of options, whoever reads the line."""

from argparse import Namespace
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from nbkit.errors import OptionError
from nbkit.trace.trace import Trace
from nbkit.verbs.parser import absolute_path
from nbkit.verbs.verb import OptionHolder
from nbkit.views.report.opreport import opreport
from nbkit.views.summary import units


@dataclass(frozen=True)
class Written:
    """The report that was written: its file, its traces, and how many and how large that is in words."""

    path: Path
    traces: list[Trace]
    size: str


def add_options(parser: OptionHolder, trace_help: str) -> None:
    """The options of a report; `trace_help` says what a TRACE is."""
    output = "the HTML file; one that is there is replaced"
    parser.add_argument("-o", "--output", type=absolute_path, metavar="FILE", help=output)
    parser.add_argument("--base", metavar="TRACE", help="an earlier trace that the flamegraph is compared with")
    parser.add_argument("--values", action="store_true", help="with the values of tensors that opdiff kept")
    parser.add_argument("--title", metavar="TEXT", help="of the page")
    parser.add_argument("traces", nargs="*", metavar="TRACE", help=trace_help)


def write(options: Namespace, find: Callable[[str], Trace], tell: Callable[[str], None] = lambda text: None) -> Written:
    """The report that the options ask for, written; `find` gives the trace that a word stands for, `tell` is told what
    takes its time.

    Raises NbkitError on what cannot be used or written.
    """
    if options.output is None:
        raise OptionError("give -o FILE, the HTML file to write.")
    traces = [find(word) for word in options.traces]
    base = None if options.base is None else find(options.base)
    tell(f"writing {options.output}")
    path = opreport(*traces, path=options.output, base=base, values=options.values, title=options.title)
    return Written(path, traces, f"{units.counted(len(traces), 'trace')}, {units.data_size(path.stat().st_size)}")
