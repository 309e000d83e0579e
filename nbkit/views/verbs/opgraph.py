"""What an opgraph trace shows: the graph, its outline and tables of parts, roles and ops, and training metrics."""

from typing import TYPE_CHECKING

from nbkit.trace.trace import Trace
from nbkit.views.graph.panel import graph_panel
from nbkit.views.op_table.panel import op_panel
from nbkit.views.plots import draw_metrics
from nbkit.views.report.panel import Contents, Panel
from nbkit.views.sections.correspondence import correspondence_sections
from nbkit.views.sections.graph import graph_sections, graph_totals, skipped_sections
from nbkit.views.sections.section import Section
from nbkit.views.summary.graph import graph_statements, skipped_statement
from nbkit.views.verbs.view import View

if TYPE_CHECKING:
    from ipywidgets import Box
    from matplotlib.figure import Figure


def _sections(trace: Trace, count: int) -> list[Section]:
    return [*correspondence_sections(trace, count), *graph_sections(trace, count)]


def _totals(trace: Trace, count: int) -> list[Section]:
    return [*correspondence_sections(trace, count), *graph_totals(trace, count)]


def _widget(trace: Trace) -> "Box":
    # anywidget takes a third of a second to import, and only a notebook needs it.
    from ipywidgets import VBox

    from nbkit.views.graph.widget import GraphView
    from nbkit.views.linking import link_graph
    from nbkit.views.op_table.widget import OpTable

    graph = GraphView(trace)
    if not _has_ops(trace):
        return VBox([graph])
    table = OpTable(trace)
    link_graph(graph, table)
    return VBox([graph, table])


def _charts(trace: Trace) -> "list[Figure]":
    return [draw_metrics(trace)] if len(trace.frames.get("metrics", ())) else []


def _panels(contents: Contents) -> list[Panel]:
    return [graph_panel(contents), *([op_panel(contents)] if _has_ops(contents.trace) else [])]


def _has_ops(trace: Trace) -> bool:
    return len(trace.frames.get("ops", ())) > 0


VIEW = View(
    widget=_widget,
    sections=_sections,
    charts=_charts,
    calls=lambda trace, count: "",
    verdict=lambda trace: skipped_statement(trace.meta),
    found=skipped_sections,
    panels=_panels,
    totals=_totals,
    shows="nodes",
    nothing="No node was read.",
    statements=graph_statements,
)
