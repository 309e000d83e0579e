"""What an optrace trace shows: the op table, and tables of where the self time went."""

from typing import TYPE_CHECKING

from nbkit.trace.trace import Trace
from nbkit.views.plots import draw_modules, draw_ops
from nbkit.views.sections.section import op_sections
from nbkit.views.verbs.view import View

if TYPE_CHECKING:
    from nbkit.views.op_table.widget import OpTable


def _widget(trace: Trace) -> "OpTable":
    # anywidget takes a third of a second to import, and only a notebook needs it.
    from nbkit.views.op_table.widget import OpTable

    return OpTable(trace)


VIEW = View(widget=_widget, sections=op_sections, charts=lambda trace: [draw_ops(trace), draw_modules(trace)])
