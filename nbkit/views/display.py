"""How a trace shows itself: a widget where a live front end can draw one, and always its HTML and text twins."""

import sys
from typing import Any
from weakref import WeakKeyDictionary

from nbkit.trace import Trace
from nbkit.views.static_table import static_table
from nbkit.views.text import summary

__all__ = ["mimebundle", "summary"]
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
# One widget per trace, however often it is shown: widget state holds the front-end code.
_TABLES: "WeakKeyDictionary[Trace, Any]" = WeakKeyDictionary()


def mimebundle(trace: Trace) -> tuple[dict[str, Any], dict[str, Any]]:
    """What Jupyter shows of a trace: text/html and text/plain, and the op table's view under a live kernel."""
    bundle: dict[str, Any] = {"text/plain": summary(trace), "text/html": static_table(trace)}
    if not _has_live_front_end():
        return bundle, {}
    # anywidget takes a third of a second to import, and only a notebook needs it.
    from nbkit.views.op_table import OpTable

    table = _TABLES.get(trace)
    if table is None or table.comm is None:
        table = _TABLES[trace] = OpTable(trace)
    view = {"version_major": 2, "version_minor": 1, "model_id": table.model_id}
    return {WIDGET_VIEW: view, **bundle}, {}


def _has_live_front_end() -> bool:
    """Whether this process is a Jupyter kernel; asked without importing ipykernel."""
    kernelapp = sys.modules.get("ipykernel.kernelapp")
    return kernelapp is not None and bool(kernelapp.IPKernelApp.initialized())
