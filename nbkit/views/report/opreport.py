"""opreport writes one HTML file of any traces, which opens offline and leaves the machine as it is."""

import base64
import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from os import PathLike
from pathlib import Path

import pandas as pd

from nbkit import units
from nbkit.errors import OptionError
from nbkit.progress import Progress
from nbkit.trace.atomic_write import writing
from nbkit.trace.checks import checked_trace
from nbkit.trace.job.job import Job
from nbkit.trace.job.ranks import rank_folders
from nbkit.trace.storage import traces_in
from nbkit.trace.trace import Trace
from nbkit.views.op_table.node_columns import node_trace
from nbkit.views.panels.panel import Contents
from nbkit.views.report.chapter import Chapter, chapters, trace_section
from nbkit.views.report.front.first_screen import first_screen, worst_findings
from nbkit.views.report.front.steps import RecordedStep, recorded_steps, titles
from nbkit.views.report.leaving import leaving
from nbkit.views.static_html.style import STYLE
from nbkit.views.static_html.view import view_of
from nbkit.views.summary.names import shown

# The page's own policy forbids whatever an escape might have missed: no load, and no script but that with its hash.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
_ENDS_SCRIPT = re.compile(r"<(?=/script|!--)", re.IGNORECASE)
STATIC = Path(__file__).parents[1] / "static"
# For a reader who has never seen nbkit.
FOOTER = (
    "<footer><p>Made by nbkit, which records PyTorch steps in notebooks and scripts. Self time is the time of an op or "
    "module without the calls inside it. A noise ratio is the error of a result over what rounding may do to it: about "
    "1 is usual, above the threshold it is a mismatch. Phases are forward, backward, optimizer, and other for what is "
    "none of these.</p></footer>"
)


def opreport(
    *traces: Trace | pd.DataFrame | str | Path,
    path: str | Path,
    base: Trace | None = None,
    values: bool = False,
    title: str | None = None,
) -> Path:
    """Writes one HTML file of these traces and returns its path.

    It holds a summary in words, the widgets of the notebook with their data, tables and pictures, needs no network and
    no kernel, and shows tables and pictures where no script runs, and on paper. The same traces give the same bytes.
    Paths are shortened: they begin at the home directory or at site-packages, else at the last folder.

    Args:
        traces: of any verb, in the order in which they are to stand; also the folder of one, of the ranks of a job, or
            of those that `audit -o` wrote, and the frame of `nbkit.cost_table`.
        path: the file; one that is there is replaced, once the new one is whole. Missing folders are made.
        base: a trace that the flame graph of a single trace is compared with.
        values: with the values of tensors that opdiff captured, scripts that run an op alone, and the elements that
            messages name; False leaves them out.
        title: of the page; by default what the one trace is called, or how many there are.

    Raises:
        OptionError: nothing to report: no trace, something else than a trace, or none with an op; or `path` is no path.
        TraceError: the file cannot be written; nothing half-written is left.
    """
    if not isinstance(path, str | PathLike):
        raise OptionError(f"path must be a path of the file to write, got {path!r}.")
    given = [trace for item in traces for trace in _loaded(item)]
    _check_traces(given)
    if base is not None:
        _check_base(base, given)
    base = None if base is None else leaving(base, values=values)
    drawn = [0]  # how many chapters are done, each time one begins: they take about as long as each other
    told = f"opreport: writing {units.counted(len(given), 'trace')} to {Path(path).name}"
    with Progress(
        lambda: f"{told}, {drawn[-1]} done" if drawn[-1] else told, done=lambda: drawn[-1] / len(given) or None
    ):
        contents = [Contents(leaving(trace, values=values), base, values) for trace in given]
        text = report_page(contents, title, drawn.append)
        with writing(Path(path), "the report") as file:
            file.write(text)
    return Path(path)


def _loaded(trace: Trace | pd.DataFrame | str | Path) -> list[Trace]:
    """Returns the trace, or those of a folder; ranks are one, and so is a frame of nodes."""
    if isinstance(trace, pd.DataFrame):
        return [node_trace(trace)]
    if not isinstance(trace, str | Path):
        return [trace]
    if rank_folders(Path(trace)):
        return [Job(Path(trace))]
    return [Trace.load(path) for path in traces_in(Path(trace)) or [Path(trace)]]


def _check_traces(traces: Sequence[Trace]) -> None:
    if not traces:
        raise OptionError("There is no trace to report; give one or more.")
    for trace in traces:
        _check_recorded(trace, "trace", view_of(checked_trace(trace, of_ranks=True)).shows)
    if all(view_of(trace).is_empty(trace) for trace in traces):
        raise OptionError("No op was recorded, so there is nothing to report; trace.meta says what was left out.")


def _check_base(base: Trace, traces: Sequence[Trace]) -> None:
    for name, trace in (("base", base), *(("trace", trace) for trace in traces)):
        _check_recorded(trace, name, "ops")
    if len(traces) > 1:
        raise OptionError(f"base is compared with one trace, and {len(traces)} were given; write a report for each.")


def _check_recorded(trace: Trace, name: str, frame: str) -> None:
    if frame not in checked_trace(trace, name, of_ranks=name == "trace").frames:
        raise OptionError(f"{trace!r} has no {frame} to report; is it still being recorded?")


def report_page(
    traces: Sequence[Contents], title: str | None = None, draws: Callable[[int], None] = lambda number: None
) -> str:
    """Returns the page as text, the same for the same traces; `draws` is told each chapter, from 0 on, as it begins."""
    parts = chapters(traces)
    is_several = len(parts) > 1
    steps = recorded_steps(parts)
    on_top = {id(entry) for step in steps for _, entry in worst_findings(step)}
    sections = []
    for number, chapter in enumerate(parts):
        draws(number)
        sections.append(trace_section(chapter, on_top, has_heading=is_several))
    css = (STATIC / "report.css").read_text(encoding="utf-8")
    script = (STATIC / "report.js").read_text(encoding="utf-8")
    body = f"<main>{first_screen(steps, parts)}{''.join(sections)}</main>{FOOTER}"
    return document(shown(title or _title(steps, parts)), Body(body, f"{STYLE}{css}", script))


def _title(steps: Sequence[RecordedStep], parts: Sequence[Chapter]) -> str:
    """Returns the title of the only step, by its model; else how many steps, or traces that are none, there are."""
    if len(steps) == 1 and (steps[0].models or steps[0].name or len(parts) > 1):
        return titles(steps)[0]
    return parts[0].title if len(parts) == 1 else f"Report of {units.counted(len(steps), 'recording')}"


@dataclass(frozen=True)
class Body:
    """What is between title and end of a page: HTML, and its styles and script, if it has them."""

    html: str
    style: str = ""
    script: str = ""


def document(title: str, body: Body) -> str:
    """Returns the page as text; the same for the same title and body."""
    policy, script = POLICY, ""
    if body.script:
        # The parser makes \n of every line end before the browser hashes the script, and must not see its end early.
        source = _ENDS_SCRIPT.sub(r"\\x3c", re.sub(r"\r\n?", "\n", body.script))
        digest = base64.b64encode(hashlib.sha256(source.encode()).digest()).decode("ascii")
        policy = f"{POLICY}; script-src 'sha256-{digest}'"
        script = f'<script type="module">{source}</script>'
    title = escape(title)
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><title>{title}</title>'
        f"<style>{body.style}</style></head><body><h1>{title}</h1>{body.html}{script}</body></html>\n"
    )
