"""The tables that say what a verb found, above the op table in one widget."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from nbkit.trace.trace import Trace
from nbkit.views.sections.section import Section
from nbkit.views.static_html.html_table import STYLE, sections_html

if TYPE_CHECKING:
    from ipywidgets import VBox

ROWS = 10


def with_tables(sections: Callable[[Trace, int], list[Section]]) -> "Callable[[Trace], VBox]":
    """What makes the widget of a trace: these sections, ten rows each, and the op table below them."""

    def widget(trace: Trace) -> "VBox":
        # anywidget takes a third of a second to import, and only a notebook needs it.
        from ipywidgets import HTML, VBox

        from nbkit.views.op_table.widget import OpTable

        tables = f'<style>{STYLE}</style><div class="nbkit-static">{sections_html(sections(trace, ROWS))}</div>'
        # Without the margins of a control, so that its border and that of the op table are one line.
        return VBox([HTML(tables, layout={"margin": "0 0 6px"}), OpTable(trace)])

    return widget
