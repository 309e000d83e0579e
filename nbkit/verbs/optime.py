"""The options of optime."""

from argparse import Namespace
from contextlib import AbstractContextManager

from nbkit.capture.profiler.optime import optime
from nbkit.trace.trace import Trace
from nbkit.verbs.verb import OptionHolder, Verb


def _add_options(parser: OptionHolder) -> None:
    for flag, meaning in (
        ("--memory", "also record every allocation and free"),
        ("--stacks", "also record calls of torch's Python API, each with its source line (the dearest option)"),
        ("--shapes", "also record the shapes of inputs, and with them the FLOPs of ops"),
    ):
        parser.add_argument(flag, action="store_true", help=meaning)
    parser.add_argument("--device", metavar="NAME", help="cpu: leave an accelerator out; else it is recorded if there")
    parser.add_argument("--name", metavar="TEXT", help="what the trace is called where it is shown")


def _record(options: Namespace) -> AbstractContextManager[Trace]:
    return optime(
        memory=options.memory,
        stacks=options.stacks,
        shapes=options.shapes,
        device=options.device,
        warmup=options.warmup,
        repeats=options.repeats,
        name=options.name,
    )


OPTIME = Verb("optime", "time every op on the profiler's clock", _add_options, _record, is_repeated=True)
