"""`python -m nbkit report`: traces as one HTML file."""

from collections.abc import Sequence

from nbkit.command_line.command import FINDINGS, FINE, PROGRAM, Command
from nbkit.command_line.parser import CommandParser, bad_use
from nbkit.command_line.terminal import Narrator, show
from nbkit.load import load
from nbkit.trace.trace import Trace
from nbkit.verbs import has_findings, opreport

DESCRIPTION = f"""\
Write one HTML file of any traces: a summary in words, the widgets of the notebook, tables and pictures. It opens in any
browser, offline and without a kernel; where no script runs, tables and pictures remain.

    {PROGRAM} report trace -o report.html                    of one trace
    {PROGRAM} report first timing checked -o report.html     of several, one below the other
    {PROGRAM} report after --base before -o report.html      a flamegraph of what is slower and faster
    {PROGRAM} report compared --values -o report.html        with the values that opdiff kept

Exit status: 0; 1 if --fail-on-findings and there are some; 2 if a trace cannot be read or the file not be written."""


def _parser() -> CommandParser:
    parser = CommandParser("report", DESCRIPTION)
    opreport.add_options(parser, "folder of a trace, or a Chrome trace")
    fails = "exit with 1 if there are mismatches or findings"
    parser.add_argument("--fail-on-findings", action="store_true", help=fails)
    return parser


def _run(words: Sequence[str]) -> int:
    options, narrator = _parser().parse_words(words), Narrator()

    def find(path: str) -> Trace:
        narrator.progress(f"reading {path}")
        return load(path)

    with bad_use(REPORT.name):
        written = opreport.write(options, find, narrator.progress)
    show(f"{written.path}: {written.size}")
    return FINDINGS if options.fail_on_findings and any(map(has_findings, written.traces)) else FINE


REPORT = Command("report", "write traces as one HTML file", "report trace -o report.html", _run)
