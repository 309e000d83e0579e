"""The options of opdiff."""

from argparse import Namespace
from contextlib import AbstractContextManager

from nbkit.capture.calls.capturer import KEEP, KEEP_BYTES
from nbkit.capture.diff.opdiff import opdiff
from nbkit.numerics.noise_ratio import THRESHOLD
from nbkit.patterns import split_patterns
from nbkit.trace.trace import Trace
from nbkit.verbs.parser import integer, number
from nbkit.verbs.verb import OptionHolder, Verb


def _add_options(parser: OptionHolder) -> None:
    for option, meaning in (
        ("--ops", "only ops that fit"),
        ("--exclude-ops", "leave out ops that fit"),
        ("--modules", "only ops inside modules that fit, by their named_modules() path"),
        ("--exclude-modules", "leave out ops inside modules that fit"),
        ("--phases", "compare only these: forward, backward, optimizer, other"),
    ):
        parser.add_argument(option, action="extend", type=split_patterns, metavar="PATTERN", help=meaning)
    reference = "cpu (float64; the default), cpu:float32, or another device such as cuda:float64"
    parser.add_argument("--reference", default="cpu", metavar="NAME", help=reference)
    against = (
        "other run to follow beside it: cpu:float64, cpu:float32, cpu:same, another device, or the folder of a trace "
        "saved with value statistics; says of each error whether its op made it or its inputs brought it, and where "
        "the runs part"
    )
    parser.add_argument("--against", metavar="NAME", help=against)
    parser.add_argument("--sample", type=integer, default=1, metavar="N", help="compare every N-th call of an op")
    parser.add_argument("--max-bytes", type=integer, metavar="N", help="leave out ops whose inputs take more")
    threshold = f"noise ratio above which a difference is an error (default: {THRESHOLD:g})"
    parser.add_argument("--threshold", type=number, default=THRESHOLD, metavar="X", help=threshold)
    keep = f"keep copies of the values of the first N calls that are wrong (default: {KEEP}; 0: none)"
    parser.add_argument("--keep", type=integer, default=KEEP, metavar="N", help=keep)
    keep_bytes = f"what they may take in all (default: {KEEP_BYTES:,})"
    parser.add_argument("--keep-bytes", type=integer, default=KEEP_BYTES, metavar="N", help=keep_bytes)
    keep_ops = "keep as many right calls of ops that fit"
    parser.add_argument("--keep-ops", action="extend", type=split_patterns, metavar="PATTERN", help=keep_ops)
    parser.add_argument("--name", metavar="TEXT", help="what the trace is called where it is shown")


def _record(options: Namespace) -> AbstractContextManager[Trace]:
    return opdiff(
        reference=options.reference,
        ops=options.ops,
        exclude_ops=options.exclude_ops,
        modules=options.modules,
        exclude_modules=options.exclude_modules,
        phases=options.phases,
        sample=options.sample,
        max_bytes=options.max_bytes,
        threshold=options.threshold,
        keep=options.keep,
        keep_bytes=options.keep_bytes,
        keep_ops=options.keep_ops,
        against=options.against,
        name=options.name,
    )


def _findings(trace: Trace) -> int:
    return int(trace.meta.get("mismatches", 0))


OPDIFF = Verb("opdiff", "run every op again on a reference, judge what differs", _add_options, _record, _findings)
