"""What an optime trace shows: the flamegraph and the op table, linked, and tables of where the time went."""

from typing import TYPE_CHECKING

from nbkit.trace.trace import Trace
from nbkit.views.flamegraph.panel import flame_panel
from nbkit.views.flamegraph.svg import flame_svg
from nbkit.views.op_table.panel import op_panel
from nbkit.views.plots import draw_memory, draw_modules, draw_ops
from nbkit.views.report.panel import Contents, Panel
from nbkit.views.sections.time import time_sections
from nbkit.views.tables.calls import slowest_calls_table
from nbkit.views.verbs.view import View

if TYPE_CHECKING:
    from ipywidgets import VBox
    from matplotlib.figure import Figure


def _widget(trace: Trace) -> "VBox":
    # anywidget takes a third of a second to import, and only a notebook needs it.
    from ipywidgets import VBox

    from nbkit.views.flamegraph.widget import FlameGraph
    from nbkit.views.linking import link
    from nbkit.views.op_table.widget import OpTable

    flame, table = FlameGraph(trace), OpTable(trace)
    link(flame, table)
    return VBox([flame, table])


def _charts(trace: Trace) -> "list[Figure]":
    memory = [draw_memory(trace)] if "memory" in trace.frames else []
    return [draw_ops(trace), draw_modules(trace), *memory]


def _panels(contents: Contents) -> list[Panel]:
    return [flame_panel(contents), op_panel(contents)]


VIEW = View(
    widget=_widget,
    sections=time_sections,
    charts=_charts,
    picture=flame_svg,
    calls=slowest_calls_table,
    panels=_panels,
    totals=time_sections,
)
