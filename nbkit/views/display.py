"""How a trace shows itself: a widget where a live front end can draw one, and always its HTML and text twins."""

import sys
from typing import Any
from weakref import WeakKeyDictionary

from nbkit.trace import Trace
from nbkit.views.static_table import static_table
from nbkit.views.text import summary
from nbkit.views.verbs import view_of

__all__ = ["mimebundle", "summary"]
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
# One widget per trace, however often it is shown: widget state holds the front-end code.
_WIDGETS: "WeakKeyDictionary[Trace, Any]" = WeakKeyDictionary()


def mimebundle(trace: Trace) -> tuple[dict[str, Any], dict[str, Any]]:
    """What Jupyter shows of a trace: text/html and text/plain, and its verb's widget under a live kernel."""
    bundle: dict[str, Any] = {"text/plain": summary(trace), "text/html": static_table(trace)}
    if not _has_live_front_end():
        return bundle, {}
    widget = _WIDGETS.get(trace)
    if widget is None or widget.comm is None:
        widget = _WIDGETS[trace] = view_of(trace).widget(trace)
    view = {"version_major": 2, "version_minor": 1, "model_id": widget.model_id}
    return {WIDGET_VIEW: view, **bundle}, {}


def _has_live_front_end() -> bool:
    """Whether this process is a Jupyter kernel; asked without importing ipykernel."""
    kernelapp = sys.modules.get("ipykernel.kernelapp")
    return kernelapp is not None and bool(kernelapp.IPKernelApp.initialized())
