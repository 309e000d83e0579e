"""`python -m nbkit load`: a trace as text, its frames as tables or CSV."""

from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

from nbkit.command_line.command import FINDINGS, FINE, PROGRAM, Command
from nbkit.command_line.frame_text import frame_of, frame_text, rows_of
from nbkit.command_line.parser import CommandParser, bad_use
from nbkit.command_line.terminal import show, width
from nbkit.errors import OptionError
from nbkit.load import load
from nbkit.trace.atomic_write import writing
from nbkit.trace.trace import Trace
from nbkit.verbs import has_findings
from nbkit.verbs.parser import absolute_path, whole_number
from nbkit.views.summary import units

DESCRIPTION = f"""\
Open a trace that nbkit saved, a Chrome trace of torch.profiler, a dump of another framework or an ONNX model, and show
it.

    {PROGRAM} load trace                                       what ran, how long, what was slow, what is wrong
    {PROGRAM} load trace --frame ops --sort self_time_us       the slowest calls, all columns
    {PROGRAM} load trace --frame ops --columns op,module,shape
    {PROGRAM} load trace --frame tensors --csv tensors.csv     for a spreadsheet; --csv - writes to stdout
    {PROGRAM} load trace.json.gz --save trace                  turn a Chrome trace into a folder of Parquet files

Exit status: 0; 1 if --fail-on-findings and there are some; 2 if it cannot be read."""


def _parser() -> CommandParser:
    parser = CommandParser("load", DESCRIPTION)
    parser.add_argument("--frame", metavar="NAME", help="show rows of this frame instead: ops, tensors, modules, ...")
    parser.add_argument("--sort", metavar="COLUMN", help="numbers largest first, texts by the alphabet")
    parser.add_argument("--columns", type=_names, metavar="A,B", help="only these columns")
    parser.add_argument("--head", type=whole_number(1), metavar="N", help="N rows (default: 20; with --csv all)")
    parser.add_argument("--csv", metavar="FILE", help="write the rows to FILE; - is stdout")
    parser.add_argument("--save", type=absolute_path, metavar="FOLDER", help="save the trace there")
    parser.add_argument("--fail-on-findings", action="store_true", help="exit with 1 if it has mismatches or findings")
    parser.add_argument("path", metavar="PATH", help="folder of a trace, or a Chrome trace")
    return parser


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _run(words: Sequence[str]) -> int:
    options = _parser().parse_words(words)
    with bad_use(LOAD.name):
        _check(options)
        trace = load(options.path)
        if options.frame is not None:
            _show_frame(trace, options)
        elif options.save is None:
            show(trace.summary())
        if options.save is not None:
            trace.save(options.save)
    return FINDINGS if options.fail_on_findings and has_findings(trace) else FINE


def _check(options: Namespace) -> None:
    given = [name for name in ("sort", "columns", "head", "csv") if vars(options)[name] is not None]
    if options.frame is None and given:
        raise OptionError(f"--{given[0]} is about the rows of one frame; give --frame, too, such as --frame ops.")


def _show_frame(trace: Trace, options: Namespace) -> None:
    rows = rows_of(frame_of(trace, options.frame), options.sort, options.columns)
    if options.csv is None:
        head = options.head or 20
        more = f"\n{units.counted(len(rows) - head, 'more row')}; --head N shows N" if len(rows) > head else ""
        show(frame_text(rows.head(head), width()) + more)
        return
    text = rows.head(options.head or len(rows)).to_csv(index=False, lineterminator="\n")
    if options.csv == "-":
        show(text.rstrip("\n"))
    else:
        with writing(Path(options.csv), "the rows") as file:
            file.write(text)


LOAD = Command("load", "show a trace", "load trace --frame ops --sort self_time_us", _run)
