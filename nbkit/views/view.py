"""View says what a verb's traces show; `VIEWS` has that of each verb, filled by nbkit.verbs.registry."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from nbkit.trace.trace import Trace
from nbkit.views.op_table.panel import op_panel
from nbkit.views.plots import draw_modules, draw_ops
from nbkit.views.report.panel import Contents, Panel
from nbkit.views.sections.section import Section, op_sections
from nbkit.views.summary.statement import Statement
from nbkit.views.summary.verdict import values_verdict
from nbkit.views.tables.calls import first_calls_table


def no_picture(trace: Trace) -> str:
    """Nothing, for traces that are tables only."""
    return ""


def nothing_found(trace: Trace, count: int) -> list[Section]:
    """Nothing, for verbs that record and judge nothing."""
    return []


def ops_only(contents: Contents) -> list[Panel]:
    """The op table, for verbs that have no other widget."""
    return [op_panel(contents)]


def op_charts(trace: Trace) -> list[Any]:
    """Where the self time went: by op, by module."""
    return [draw_ops(trace), draw_modules(trace)]


@dataclass(frozen=True)
class View:
    """What a trace shows, from one source for every host; without settings, what an optrace trace shows.

    `widget` is the live view, null for the op table alone; `sections` are the tables of the summary, with at most so
    many rows; `picture` is HTML of a static picture and `calls` that of a table of single calls. A report has
    `verdict`, its answer to whether anything is wrong, the tables of what was `found`, `panels` with the widgets, the
    tables of where the time went (`totals`) and `charts` (matplotlib figures). All of it is about the frame that
    `shows` names; without rows of that `nothing` is said. `statements` are the report's summary in words, where it is
    not about ops.
    """

    widget: Callable[[Trace], Any] | None = None
    sections: Callable[[Trace, int], list[Section]] = op_sections
    charts: Callable[[Trace], list[Any]] = op_charts
    picture: Callable[[Trace], str] = no_picture
    calls: Callable[[Trace, int], str] = first_calls_table
    verdict: Callable[[Trace], Statement] = values_verdict
    found: Callable[[Trace, int], list[Section]] = nothing_found
    panels: Callable[[Contents], list[Panel]] = ops_only
    totals: Callable[[Trace, int], list[Section]] = op_sections
    shows: str = "ops"
    nothing: str = "No op was recorded."
    statements: Callable[[Trace], list[Statement]] | None = None

    def is_empty(self, trace: Trace) -> bool:
        """Whether there is nothing to show: the frame is not there, or has no row."""
        return not len(trace.frames.get(self.shows, ()))


OPS_VIEW = View()
VIEWS: dict[str, View] = {}


def view_of(trace: Trace) -> View:
    """The view of the verb that made the trace; traces of ops by anything else are shown as optrace's are."""
    if not VIEWS:  # a view module is used by itself: the package root knows where the verbs are
        getattr(Trace.presenter, "know_the_views", lambda: None)()
    return VIEWS.get(str(trace.meta.get("verb")), OPS_VIEW)
