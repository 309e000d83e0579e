"""The graph of a report: live, and as an outline of its parts."""

from nbkit.views.graph_data import graph_data
from nbkit.views.graph_sections import parts_section
from nbkit.views.html_table import sections_html
from nbkit.views.report.panel import Contents, Panel

ROWS = 300


def graph_panel(contents: Contents) -> Panel:
    """All graphs of the trace; the parts of them where no script runs."""
    twin = sections_html([parts_section(contents.trace, ROWS)])
    return Panel("graph", "Graph", graph_data(contents.trace), f'<div class="nbkit-static">{twin}</div>')
