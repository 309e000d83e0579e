"""Section: one trace of a report, from its summary to its charts."""

from html import escape
from typing import TYPE_CHECKING

from nbkit.trace import Trace
from nbkit.views.facts import facts
from nbkit.views.figure_svg import figure_svg
from nbkit.views.html_table import sections_html
from nbkit.views.report.panel import Contents, panel_html
from nbkit.views.report.statement import statements_html
from nbkit.views.report.summary import summary
from nbkit.views.static_table import NOTHING
from nbkit.views.verbs import view_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ROWS = 20
# Inches from which on a figure would be too small beside another one.
WIDE = 8.0


def trace_section(contents: Contents, anchor: str, heading: str) -> str:
    """HTML of the trace; ids in it begin with `anchor`, `heading` is its title or empty."""
    head = f"<h2>{escape(heading)}</h2>" if heading else ""
    return f'<section class="nbkit-trace" id="{anchor}">{head}{_inside(contents, anchor)}</section>'


def _inside(contents: Contents, anchor: str) -> str:
    trace, view = contents.trace, view_of(contents.trace)
    if not len(trace.ops):
        reason = facts(trace).incomplete
        return NOTHING + (f"<p>{escape(reason)}</p>" if reason else "")
    panels = "".join(panel_html(panel, anchor) for panel in view.panels(contents))
    # A chart of actual against expected values would show them.
    drawn = trace if contents.values else Trace(trace.frames, trace.meta)
    charts = "".join(_chart(figure, f"{anchor}-chart{number}-") for number, figure in enumerate(view.charts(drawn), 1))
    return (
        statements_html(summary(trace, contents.base), anchor)
        + _tables(sections_html(view.found(trace, ROWS)), f"{anchor}-found", "What was found")
        + panels
        + _tables(sections_html(view.totals(trace, ROWS)), f"{anchor}-totals", "Totals")
        + f'<div class="charts">{charts}</div>'
    )


def _tables(html: str, anchor: str, heading: str) -> str:
    return f'<section id="{anchor}"><h3>{heading}</h3><div class="nbkit-static">{html}</div></section>' if html else ""


def _chart(figure: "Figure", prefix: str) -> str:
    """A figure as inline SVG; a wide one gets a line of its own."""
    kind = ' class="wide"' if figure.get_figwidth() > WIDE else ""
    return f"<figure{kind}>{figure_svg(figure, prefix)}</figure>"
