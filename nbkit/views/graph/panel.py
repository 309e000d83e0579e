"""The graph of a report: live, and as an outline of its parts."""

from nbkit.views.graph.data import graph_data
from nbkit.views.panels.panel import Contents, Panel
from nbkit.views.sections.graph.graph import parts_section
from nbkit.views.sections.writers import to_html

ROWS = 300


def graph_panel(contents: Contents) -> Panel:
    """Returns the panel of all graphs, which lists their parts where no script runs."""
    static = to_html([parts_section(contents.trace, ROWS)])
    return Panel("graph", "Graph", graph_data(contents.trace), f'<div class="nbkit-static">{static}</div>')
