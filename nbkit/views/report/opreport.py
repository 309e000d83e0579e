"""opreport writes one HTML file of any traces, which opens offline and leaves the machine as it is."""

from collections.abc import Sequence
from os import PathLike
from pathlib import Path

from nbkit import units
from nbkit.errors import OptionError
from nbkit.progress import Progress
from nbkit.trace.atomic_write import writing
from nbkit.trace.checks import checked_trace
from nbkit.trace.storage import traces_in
from nbkit.trace.trace import Trace
from nbkit.views.panels.panel import Contents
from nbkit.views.report.leaving import leaving
from nbkit.views.report.page import report_page
from nbkit.views.static_html.view import view_of


def opreport(
    *traces: Trace | str | Path,
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
        traces: of any verb, in the order in which they are to stand; also the folder of one, or of those that
            `audit -o` wrote.
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


def _loaded(trace: Trace | str | Path) -> list[Trace]:
    """Returns the trace, or those of a folder."""
    if not isinstance(trace, str | Path):
        return [trace]
    return [Trace.load(path) for path in traces_in(Path(trace)) or [Path(trace)]]


def _check_traces(traces: Sequence[Trace]) -> None:
    if not traces:
        raise OptionError("There is no trace to report; give one or more.")
    for trace in traces:
        _check_recorded(trace, "trace", view_of(checked_trace(trace)).shows)
    if all(view_of(trace).is_empty(trace) for trace in traces):
        raise OptionError("No op was recorded, so there is nothing to report; trace.meta says what was left out.")


def _check_base(base: Trace, traces: Sequence[Trace]) -> None:
    for name, trace in (("base", base), *(("trace", trace) for trace in traces)):
        _check_recorded(trace, name, "ops")
    if len(traces) > 1:
        raise OptionError(f"base is compared with one trace, and {len(traces)} were given; write a report for each.")


def _check_recorded(trace: Trace, name: str, frame: str) -> None:
    if frame not in checked_trace(trace, name).frames:
        raise OptionError(f"{trace!r} has no {frame} to report; is it still being recorded?")
