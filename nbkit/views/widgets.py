"""Builds the widget of a verb's traces: brief, picture, op table, linked. Only a notebook imports it."""

from collections.abc import Callable

from ipywidgets import HTML, VBox

from nbkit.trace.trace import Trace
from nbkit.views.brief.brief import brief_of
from nbkit.views.brief.html import brief_html
from nbkit.views.diff_table.widget import DiffTable
from nbkit.views.flamegraph.widget import FlameGraph
from nbkit.views.graph.widget import GraphView
from nbkit.views.linking import link, link_differences, link_graph
from nbkit.views.op_table.widget import OpTable
from nbkit.views.sections.section import Section
from nbkit.views.sections.writers import to_html
from nbkit.views.static_html.style import static_div

ROWS = 10
FINDINGS = 5


def flame_and_ops(trace: Trace) -> VBox:
    """Puts the flame graph above the op table."""
    flame, table = FlameGraph(trace), OpTable(trace)
    link(flame, table)
    return VBox([*_brief(trace), flame, table])


def differences_and_ops(trace: Trace) -> VBox:
    """Puts the diff table above the op table."""
    differences, table = DiffTable(trace), OpTable(trace)
    link_differences(differences, table)
    return VBox([*_brief(trace), differences, table])


def graph_and_ops(trace: Trace) -> VBox:
    """Puts the graph above the op table, where ops were recorded."""
    graph = GraphView(trace)
    if not len(trace.frames.get("ops", ())):
        return VBox([graph])
    table = OpTable(trace)
    link_graph(graph, table)
    return VBox([graph, table])


def sections_and_flame(trace: Trace, html: str) -> VBox:
    """Puts the brief and this HTML above the flame graph."""
    return VBox([*_brief(trace, html), FlameGraph(trace)])


def sections_and_ops(trace: Trace, sections: Callable[[Trace, int], list[Section]]) -> VBox:
    """Puts the brief and these sections, ten rows each, above the op table."""
    return VBox([*_brief(trace, to_html(sections(trace, ROWS))), OpTable(trace)])


def ops_alone(trace: Trace) -> OpTable | VBox:
    """Shows the op table, below the brief if that has a verdict."""
    above, table = _brief(trace), OpTable(trace)
    return VBox([*above, table]) if above else table


def _brief(trace: Trace, tables: str = "") -> list[HTML]:
    """Returns verdict, findings and tables as one widget; none where nothing was judged and there is no table."""
    brief = brief_of(trace)
    html = (brief_html(brief, FINDINGS) if brief.verdict else "") + tables
    # Without the margins of a control, so that its border and that of the op table are one line.
    return [HTML(static_div(html), layout={"margin": "0 0 6px"})] if html else []
