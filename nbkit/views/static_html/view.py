"""View says what a verb's traces show; `VIEWS` has that of each verb, filled by nbkit.verbs.registry."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from nbkit.trace.trace import Trace
from nbkit.views.panels.panel import Contents, Panel
from nbkit.views.sections.section import Section
from nbkit.views.statements.statement import Statement


def no_picture(trace: Trace) -> str:
    """Returns nothing, for traces that are tables only."""
    return ""


def no_outcome(trace: Trace, count: int) -> list[Section]:
    """Returns nothing, for verbs that record and judge nothing."""
    return []


@dataclass(frozen=True)
class View:
    """Says what a trace shows, from one source for every host.

    `widget` is the live view; `sections` are the tables of the summary, with at most so many rows; `picture` is HTML of
    a static picture and `calls` that of a table of single calls. A report has the tables of its `outcome`, a `drawing`
    that no widget replaces, `panels` with the widgets, the tables of where the time went (`totals`) and `charts`
    (matplotlib figures). All of it is about the frame that `shows` names; without rows of that `nothing` is said.
    `statements` are the report's summary in words, where it is not about ops. The brief stands before all of it.
    """

    widget: Callable[[Trace], Any]
    sections: Callable[[Trace, int], list[Section]]
    charts: Callable[[Trace], list[Any]]
    calls: Callable[[Trace, int], str]
    panels: Callable[[Contents], list[Panel]]
    totals: Callable[[Trace, int], list[Section]]
    picture: Callable[[Trace], str] = no_picture
    drawing: Callable[[Trace], str] = no_picture
    outcome: Callable[[Trace, int], list[Section]] = no_outcome
    shows: str = "ops"
    nothing: str = "No op was recorded."
    statements: Callable[[Trace], list[Statement]] | None = None

    def is_empty(self, trace: Trace) -> bool:
        """Tells whether there is nothing to show: the frame is not there, or has no row."""
        return not len(trace.frames.get(self.shows, ()))


VIEWS: dict[str, View] = {}
# The verb as whose traces those of unknown verbs are shown.
USUAL_VERB = "optrace"


def view_of(trace: Trace) -> View:
    """Returns the view of the verb that made the trace; traces of ops by anything else are shown as optrace's are."""
    if not VIEWS:  # a view module is used by itself: the package root knows where the verbs are
        getattr(Trace.presenter, "know_the_views", lambda: None)()
    return VIEWS.get(str(trace.meta.get("verb")), VIEWS[USUAL_VERB])
