"""The options of opcheck."""

from argparse import Namespace
from contextlib import AbstractContextManager

from nbkit.capture.check.opcheck import opcheck
from nbkit.trace.trace import Trace
from nbkit.verbs.verb import OptionHolder, Verb


def _add_options(parser: OptionHolder) -> None:
    parser.add_argument("--stop", action="store_true", help="end it with an error at the first such op")
    parser.add_argument("--name", metavar="TEXT", help="what the trace is called where it is shown")


def _record(options: Namespace) -> AbstractContextManager[Trace]:
    return opcheck(stop=options.stop, name=options.name)


def _findings(trace: Trace) -> int:
    return len(trace.frames.get("findings", ()))


OPCHECK = Verb("opcheck", "find where NaN, Inf and lost precision begin", _add_options, _record, _findings)
