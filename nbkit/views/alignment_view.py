"""ALIGNMENT_VIEW is the view of traces of two executions side by side."""

from typing import Any

from nbkit.trace.trace import Trace
from nbkit.views.alignment.panel import alignment_panels, pairs_html
from nbkit.views.plots.errors import errors_picture
from nbkit.views.plots.picture.static import static_pictures
from nbkit.views.sections.alignment import alignment_sections
from nbkit.views.statements.alignment import alignment_statements
from nbkit.views.static_html.view import View


def _widget(trace: Trace) -> Any:
    # anywidget takes a third of a second to import, and only a notebook needs it.
    from nbkit.views.widgets import alignment_and_graphs

    return alignment_and_graphs(trace)


ALIGNMENT_VIEW = View(
    widget=_widget,
    sections=alignment_sections,
    charts=lambda trace: static_pictures(trace, errors_picture),
    calls=pairs_html,
    panels=alignment_panels,
    totals=alignment_sections,
    shows="alignment",
    nothing="No results were compared.",
    statements=alignment_statements,
)
