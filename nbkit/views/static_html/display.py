"""Shows a trace: as a widget where a live front end can draw one, and always as HTML and text."""

import json
from collections.abc import Callable
from functools import partial, wraps
from typing import Any, TypeVar
from weakref import WeakKeyDictionary, ref

from nbkit.trace.once import one_view
from nbkit.trace.trace import Trace
from nbkit.views.brief.brief import brief_of
from nbkit.views.brief.next_steps import in_session
from nbkit.views.brief.text import TOKENS, brief_json, brief_markdown
from nbkit.views.host.front_end import has_live_front_end, is_headless
from nbkit.views.host.outputs import end_with_cell
from nbkit.views.static_html.static_table import static_table
from nbkit.views.static_html.text import summary
from nbkit.views.static_html.view import view_of

__all__ = ["in_marimo", "mimebundle", "shower", "summary"]
Shown = TypeVar("Shown")
BRIEF = "application/vnd.nbkit.brief+json"
# One widget per trace, however often it is shown: widget state holds the front-end code.
_WIDGETS: "WeakKeyDictionary[Trace, ref[Any]]" = WeakKeyDictionary()


def _in_session(show: Callable[[Trace], Shown]) -> Callable[[Trace], Shown]:
    """Returns the function that shows a trace, which says in a notebook once what comes next."""

    @wraps(show)
    def shown(trace: Trace) -> Shown:
        with in_session(is_notebook=has_live_front_end() or is_headless()):
            return show(trace)

    return shown


@_in_session
@one_view()
def mimebundle(trace: Trace) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns HTML and text of a trace: what Jupyter shows where nobody can use a widget, or no longer can.

    Beside them stands the brief, as Markdown and as JSON, for programs that read a notebook's outputs. Front ends
    prefer HTML to Markdown; none draws JSON of a vendor's own type, as JupyterLab would application/json.
    """
    known = brief_of(trace)
    return {
        "text/plain": summary(trace),
        "text/html": static_table(trace),
        "text/markdown": brief_markdown(known, TOKENS),
        BRIEF: json.loads(brief_json(known, TOKENS)),
    }, {}


def shower(trace: Trace) -> Callable[[], None] | None:
    """Returns what shows a trace as outputs of the cell that runs; null where nobody can use its widget."""
    return partial(_show, trace) if has_live_front_end() else None


@_in_session
@one_view()
def _show(trace: Trace) -> None:
    """Shows the trace as HTML and text, then as its verb's widget."""
    kept = _WIDGETS.get(trace)
    widget: Any = None if kept is None else kept()
    if widget is None or widget.comm is None:
        widget = view_of(trace).widget(trace)
        _WIDGETS[trace] = ref(widget)
    end_with_cell(widget)
    widget.show(mimebundle(trace)[0])


def in_marimo(trace: Trace) -> Any:
    """Returns what marimo shows of a trace: a new widget, as marimo ends those of a cell that runs again."""
    return view_of(trace).widget(trace)._display_()
