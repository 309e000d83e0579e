"""OPS_VIEW is the view of traces of ops, FLAME_VIEW of timed ones; verbs that record more show it with changes."""

from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from typing import Any

from nbkit.trace.trace import Trace
from nbkit.views.flamegraph.panel import flame_panel
from nbkit.views.flamegraph.svg import flame_svg
from nbkit.views.op_table.calls import first_calls_table
from nbkit.views.op_table.report_data import op_panel
from nbkit.views.plots import draw_modules, draw_ops
from nbkit.views.sections.section import Section, op_sections
from nbkit.views.static_html.view import View, no_picture


def widget_named(name: str) -> Callable[[Trace], Any]:
    """Returns the function of that name in nbkit.views.widgets, imported where it is called.

    anywidget takes a third of a second to import, and only a notebook needs it.
    """
    return lambda trace: getattr(import_module("nbkit.views.widgets"), name)(trace)


def op_charts(trace: Trace) -> list[Any]:
    """Returns the charts of self time by op and by module."""
    return [draw_ops(trace), draw_modules(trace)]


def led_by(first: Callable[[Trace, int], list[Section]], picture: Callable[[Trace], str] = no_picture) -> View:
    """Returns the view of ops with these sections above all others, and a picture above them."""

    def widget(trace: Trace) -> Any:
        from nbkit.views.widgets import sections_and_ops

        return sections_and_ops(trace, first, picture)

    def sections(trace: Trace, count: int) -> list[Section]:
        return [*first(trace, count), *op_sections(trace, count)]

    return replace(OPS_VIEW, widget=widget, sections=sections, outcome=first, picture=picture)


OPS_VIEW = View(
    widget=widget_named("ops_alone"),
    sections=op_sections,
    charts=op_charts,
    calls=first_calls_table,
    panels=lambda contents: [op_panel(contents)],
    totals=op_sections,
)
FLAME_VIEW = replace(
    OPS_VIEW,
    widget=widget_named("flame_and_ops"),
    picture=flame_svg,
    panels=lambda contents: [flame_panel(contents), op_panel(contents)],
)
