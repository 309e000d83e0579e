"""Shows a widget as two outputs of a cell: its static view, which a saved notebook keeps, then the widget.

The front end hides the static view while it draws the widget (widgets/src/live/in_place.js); without the kernel, and
where no widget can be drawn, it stays. A widget that nbkit made for a trace ends once no cell shows it any more.
"""

import gc
from collections.abc import Mapping
from typing import Any
from weakref import WeakSet

from nbkit.views.host.front_end import cell_of_run, deleted_cells, is_headless, shell

WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
Bundle = tuple[dict[str, Any], dict[str, Any]]
# In the place of JupyterLab's "Error displaying widget: model not found", which follows where the kernel is gone.
_GONE = """<style>.jp-OutputArea-child:has(.nbkit-first)+*>.jupyter-widgets:not(:has(*)){font-size:0}
.jp-OutputArea-child:has(.nbkit-first)+*>.jupyter-widgets:not(:has(*))::after{
content:"Run this cell for the interactive view.";font-size:12px;opacity:.8}</style>"""
# By cell: its last run that showed widgets, and these.
_CELLS: dict[str, tuple[str, "WeakSet[Any]"]] = {}


def show(name: str, static: Mapping[str, Any], bundle: Bundle) -> None:
    """Shows the static view with `name` as its class, then the widget without text: all of it is said by then."""
    publish = shell().display_pub.publish
    publish({**static, "text/html": static_first(name, static["text/html"])})
    data, metadata = bundle
    publish({WIDGET_VIEW: data[WIDGET_VIEW], "text/plain": ""}, metadata)


def with_static_views(bundle: Bundle | None, fallbacks: Mapping[str, str]) -> Bundle | None:
    """Adds `fallbacks` by MIME type to the widget's own data and metadata; null where the widget has no view.

    In a notebook that runs headless the fallbacks are all: nbconvert drops them for a view whose state it has stored.
    """
    if bundle is None:
        return None
    data, metadata = bundle
    shown = {name: value for name, value in data.items() if name != WIDGET_VIEW or not is_headless()}
    return {**shown, **fallbacks}, metadata


def static_first(name: str, html: str) -> str:
    """Wraps a static view that stands above its widget."""
    return f'<div class="nbkit-first {name}">{html}{_GONE}</div>'


def end_with_cell(widget: Any) -> None:
    """Closes the widget when the cell that runs now runs again or is deleted, unless another one shows it, too."""
    cell, run = cell_of_run()
    if cell is None:  # such a front end does not say which cell runs
        return
    events = shell().events
    if _cell_begins not in events.callbacks["pre_run_cell"]:
        events.register("pre_run_cell", _cell_begins)
    if cell not in _CELLS or _CELLS[cell][0] != run:
        _CELLS[cell] = run, WeakSet()
    _CELLS[cell][1].add(widget)


def forget_cells(events: Any) -> None:
    """Takes out what `end_with_cell` registered; widgets that are shown stay."""
    if _cell_begins in events.callbacks["pre_run_cell"]:
        events.unregister("pre_run_cell", _cell_begins)


def _cell_begins(*_: object) -> None:
    cell, run = cell_of_run()
    # A cell that runs others begins several times.
    gone = [name for name in _CELLS if name in (cell, *deleted_cells()) and _CELLS[name][0] != run]
    widgets = {widget for name in gone for widget in _CELLS.pop(name)[1]}
    closed = widgets.difference(*(shown for _, shown in _CELLS.values()))
    for widget in closed:
        widget.close()
    if closed:
        # Widgets are circles of few objects with much data: of itself, the collector comes late.
        del widgets, closed, widget
        gc.collect()
