"""Shows a trace: as a widget where a live front end can draw one, and always as HTML and text."""

import json
from typing import Any
from weakref import WeakKeyDictionary

from nbkit.trace.trace import Trace
from nbkit.views.brief.brief import brief_of
from nbkit.views.brief.next_steps import in_session
from nbkit.views.brief.text import TOKENS, brief_json, brief_markdown
from nbkit.views.static_html.front_end import has_live_front_end
from nbkit.views.static_html.mimebundle import WIDGET_VIEW
from nbkit.views.static_html.static_table import static_table
from nbkit.views.static_html.text import summary
from nbkit.views.static_html.view import view_of
from nbkit.views.summary.once import one_view

__all__ = ["mimebundle", "summary"]
BRIEF = "application/vnd.nbkit.brief+json"
# One widget per trace, however often it is shown: widget state holds the front-end code.
_WIDGETS: "WeakKeyDictionary[Trace, Any]" = WeakKeyDictionary()


@in_session
@one_view()
def mimebundle(trace: Trace) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns what Jupyter shows of a trace: its verb's widget where somebody can use it, HTML and text.

    Beside them stands the brief, as Markdown and as JSON, for programs that read a notebook's outputs. Front ends
    prefer widget and HTML to Markdown; none draws JSON of a vendor's own type, as JupyterLab would application/json.
    """
    known = brief_of(trace)
    bundle: dict[str, Any] = {
        "text/plain": summary(trace),
        "text/html": static_table(trace),
        "text/markdown": brief_markdown(known, TOKENS),
        BRIEF: json.loads(brief_json(known, TOKENS)),
    }
    if not has_live_front_end():
        return bundle, {}
    widget = _WIDGETS.get(trace)
    if widget is None or widget.comm is None:
        widget = _WIDGETS[trace] = view_of(trace).widget(trace)
    view = {"version_major": 2, "version_minor": 1, "model_id": widget.model_id}
    return {WIDGET_VIEW: view, **bundle}, {}


def in_marimo(trace: Trace) -> Any:
    """Returns what marimo shows of a trace: a new widget, as marimo ends those of a cell that runs again."""
    return view_of(trace).widget(trace)
