"""View: what one verb's traces show; each verb is a file beside this one and a line in `VIEWS`."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from nbkit.trace import Trace
from nbkit.views.calls_table import first_calls_table
from nbkit.views.document import Body
from nbkit.views.sections import Section


def no_picture(trace: Trace) -> str:
    """Nothing, for traces that are tables only."""
    return ""


def nothing_on_top(trace: Trace, base: Trace | None) -> Body:
    """Nothing, for pages that run no script."""
    return Body("")


@dataclass(frozen=True)
class View:
    """What a trace shows, from one source for every host.

    `widget` is the live view; `sections` are the tables of the summary, with at most so many rows; `picture` is HTML of
    a still picture and `calls` that of a table of single calls. A page has `charts` (matplotlib figures) and, given
    the trace and the one to compare it with, `top`: the picture or what is live in its place.
    """

    widget: Callable[[Trace], Any]
    sections: Callable[[Trace, int], list[Section]]
    charts: Callable[[Trace], list[Any]]
    picture: Callable[[Trace], str] = no_picture
    calls: Callable[[Trace, int], str] = first_calls_table
    top: Callable[[Trace, Trace | None], Body] = nothing_on_top
