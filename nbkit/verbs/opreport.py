"""opreport writes one HTML file of any traces, as `%opreport` and as `report`."""

import os
from argparse import Namespace
from collections.abc import Callable
from html import escape
from pathlib import Path
from urllib.parse import quote

from nbkit import units
from nbkit.errors import OptionError
from nbkit.trace.job.ranks import rank_folders
from nbkit.trace.storage import traces_in
from nbkit.trace.trace import Trace
from nbkit.verbs.load import load
from nbkit.verbs.notebook import Notebook
from nbkit.verbs.options.generated import Option, OptionHolder, add_options
from nbkit.verbs.options.parser import absolute_path
from nbkit.verbs.verb import FAILS, PROGRAM, Command, LineMagic, Outcome, Verb
from nbkit.views.report.opreport import opreport


def _add_options(holder: OptionHolder, trace: str) -> None:
    """Adds the options of a report; `trace` says what a TRACE is."""
    special = {
        "path": Option(("-o", "--output"), "FILE", "the HTML file; one that is there is replaced", absolute_path),
        "base": Option(metavar="TRACE"),
        "values": Option(help="with the values of tensors that opdiff captured"),
        "traces": Option(help=trace),
    }
    add_options(holder, opreport, special)


def _write(
    options: Namespace, find: Callable[[str], list[Trace]], progress: Callable[[str], None]
) -> tuple[list[Trace], str]:
    """Write the report; its traces, and how many they are and how large it is. `find` gives the traces of a word."""
    if options.path is None:
        raise OptionError("give -o FILE, the HTML file to write.")
    traces = [trace for word in options.traces for trace in find(word)]
    base = None if options.base is None else find(options.base)[0]
    progress(f"writing {options.path}")
    opreport(*traces, path=options.path, base=base, values=options.values, title=options.title)
    size = units.data_size(options.path.stat().st_size)
    return traces, f"{units.counted(len(traces), 'trace')}, {size}"


def _traces_of(path: str) -> list[Trace]:
    """Returns the trace at a path, also of the ranks of a job, or those of a folder that audit wrote."""
    if rank_folders(Path(path)):
        return [load(path)]
    return [load(one) for one in traces_in(Path(path)) or [Path(path)]]


def _run_line(options: Namespace, notebook: Notebook) -> dict[str, str]:
    """Returns where the report is; as a link that JupyterLab follows if it is below the notebook."""

    def find(word: str) -> list[Trace]:
        trace = notebook.trace_or_folder(word)
        return [trace] if isinstance(trace, Trace) else _traces_of(trace)

    _, size = _write(options, find, lambda text: None)
    short = os.path.relpath(options.path)
    text = {"text/plain": f"{short}: {size}"}
    if short.startswith(os.pardir):
        return text
    link = f'<a href="{escape(quote(short))}" target="_blank">{escape(short)}</a>'
    return {**text, "text/html": f"{link}: {escape(size)}"}


LINE = LineMagic(
    """\
Write one HTML file of traces: a summary in words, the widgets of the notebook, tables and pictures.

It opens in any browser, offline and without a kernel; where no script runs, tables and pictures remain. TRACE is the
name of a trace: what -o NAME stored, or _optrace, _optime, _opdiff, _opcheck for the last of each.""",
    lambda holder: _add_options(
        holder, "name or folder of a trace, or folder that audit wrote; in the order in which they are to stand"
    ),
    _run_line,
)


def _add_command_options(holder: OptionHolder) -> None:
    _add_options(holder, "folder of a trace, of the ranks of a job or of what audit wrote, or a Chrome trace")
    holder.add_argument("--fail-on-findings", action="store_true", help=FAILS)


def _run_command(options: Namespace, progress: Callable[[str], None]) -> Outcome:
    def find(path: str) -> list[Trace]:
        progress(f"reading {path}")
        return _traces_of(path)

    traces, size = _write(options, find, progress)
    return Outcome(f"{options.path}: {size}", traces=traces)


COMMAND = Command(
    "report",
    "write traces as one HTML file",
    "report trace -o report.html",
    f"""\
Write one HTML file of any traces: a summary in words, the widgets of the notebook, tables and pictures. It opens in any
browser, offline and without a kernel; where no script runs, tables and pictures remain.

    {PROGRAM} report trace -o report.html
        of one trace
    {PROGRAM} report first timing checked -o report.html
        of several, one below the other
    {PROGRAM} report audited -o report.html
        of what audit -o audited wrote: all its traces
    {PROGRAM} report after --base before -o report.html
        with a flame graph of what is slower and faster
    {PROGRAM} report compared --values -o report.html
        with the values that opdiff captured

Exit status: 0; 1 if --fail-on-findings and there are some; 2 if a trace cannot be read or the file not be written.""",
    _add_command_options,
    _run_command,
)
OPREPORT = Verb("opreport", line=LINE, command=COMMAND)
