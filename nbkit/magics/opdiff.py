"""`%%opdiff`: run every op of a cell again on a reference and judge what differs."""

from argparse import Namespace
from contextlib import AbstractContextManager

from nbkit.capture.diff.opdiff import opdiff
from nbkit.capture.kept.keeper import KEEP, KEEP_BYTES
from nbkit.magics.arguments import MagicParser
from nbkit.magics.cell_magic import CellMagic, why_empty
from nbkit.patterns import split_patterns
from nbkit.trace import Trace
from nbkit.verdicts import THRESHOLD

DESCRIPTION = """\
Run every op of this cell again on a reference from the same inputs, forward and backward, and judge what differs.

The cell runs as it would without this line: same value, output and exception. The trace is shown below the cell's own
output and kept as _opdiff, its frame `diffs` has a row per compared tensor. A difference is an error if it is larger
than the op's conditioning and dtype allow. A PATTERN is a plain name, a glob (aten.add*) or re: and a regular
expression; several are separated by commas or given by repeating the option."""


def _parser() -> MagicParser:
    parser = MagicParser("opdiff", DESCRIPTION)
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
        "other run to follow beside the cell: cpu:float64, cpu:float32, cpu:same, another device, or the folder of a "
        "trace saved with value statistics; says of each error whether its op made it or its inputs brought it, and "
        "where the runs part"
    )
    parser.add_argument("--against", metavar="NAME", help=against)
    parser.add_argument("--sample", type=int, default=1, metavar="N", help="compare every N-th call of an op")
    parser.add_argument("--max-bytes", type=int, metavar="N", help="leave out ops whose inputs take more")
    threshold = f"noise ratio above which a difference is an error (default: {THRESHOLD:g})"
    parser.add_argument("--threshold", type=float, default=THRESHOLD, metavar="X", help=threshold)
    keep = f"keep copies of the values of the first N calls that are wrong (default: {KEEP}; 0: none)"
    parser.add_argument("--keep", type=int, default=KEEP, metavar="N", help=keep)
    keep_bytes = f"what they may take in all (default: {KEEP_BYTES:,})"
    parser.add_argument("--keep-bytes", type=int, default=KEEP_BYTES, metavar="N", help=keep_bytes)
    keep_ops = "keep as many right calls of ops that fit"
    parser.add_argument("--keep-ops", action="extend", type=split_patterns, metavar="PATTERN", help=keep_ops)
    parser.add_argument("--name", metavar="TEXT", help="what the trace is called where it is shown")
    return parser


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


def _nothing(trace: Trace) -> str | None:
    if len(trace.diffs):
        return None
    if len(trace.ops) or trace.meta.get("filtered_ops"):
        return "No op was compared: the filters, phases or the kind of the ops left none; see trace.meta['skipped']."
    return why_empty(trace)


OPDIFF = CellMagic(name="opdiff", parser=_parser(), record=_record, nothing=_nothing)
