"""The options of optrace."""

from argparse import Namespace
from contextlib import AbstractContextManager

from nbkit.capture.recorder.optrace import optrace
from nbkit.patterns import split_patterns
from nbkit.trace.trace import Trace
from nbkit.verbs.verb import OptionHolder, Verb


def _add_options(parser: OptionHolder) -> None:
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


def _record(options: Namespace) -> AbstractContextManager[Trace]:
    return optrace(
        ops=options.ops,
        exclude_ops=options.exclude_ops,
        modules=options.modules,
        exclude_modules=options.exclude_modules,
        values=options.values,
        name=options.name,
    )


OPTRACE = Verb("optrace", "record every op of the step", _add_options, _record)
