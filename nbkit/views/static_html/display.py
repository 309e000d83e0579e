"""Shows a trace: as a widget where a live front end can draw one, and always as HTML and text."""

from typing import Any
from weakref import WeakKeyDictionary

from nbkit.trace.trace import Trace
from nbkit.views.static_html.front_end import has_live_front_end
from nbkit.views.static_html.mimebundle import WIDGET_VIEW
from nbkit.views.static_html.static_table import static_table
from nbkit.views.static_html.text import summary
from nbkit.views.static_html.view import view_of

__all__ = ["mimebundle", "summary"]
# One widget per trace, however often it is shown: widget state holds the front-end code.
_WIDGETS: "WeakKeyDictionary[Trace, Any]" = WeakKeyDictionary()


def mimebundle(trace: Trace) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns what Jupyter shows of a trace: HTML, text, and its verb's widget where somebody can use it."""
    bundle: dict[str, Any] = {"text/plain": summary(trace), "text/html": static_table(trace)}
    if not has_live_front_end():
        return bundle, {}
    widget = _WIDGETS.get(trace)
    if widget is None or widget.comm is None:
        widget = _WIDGETS[trace] = view_of(trace).widget(trace)
    view = {"version_major": 2, "version_minor": 1, "model_id": widget.model_id}
    return {WIDGET_VIEW: view, **bundle}, {}
