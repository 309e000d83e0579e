"""What an opdiff trace shows: the verdicts, worst first, above what optrace shows of the same step."""

from typing import TYPE_CHECKING

from nbkit.trace.trace import Trace
from nbkit.views.diff_table.panel import diff_panel
from nbkit.views.op_table.panel import op_panel
from nbkit.views.plots.difference import worst_difference
from nbkit.views.report.panel import Contents, Panel
from nbkit.views.sections.diff import diff_sections, verdict_sections
from nbkit.views.sections.section import Section, op_sections
from nbkit.views.summary.verdict import difference_verdict
from nbkit.views.verbs import optrace
from nbkit.views.verbs.view import View

if TYPE_CHECKING:
    from ipywidgets import VBox
    from matplotlib.figure import Figure


def _sections(trace: Trace, count: int) -> list[Section]:
    return [*diff_sections(trace, count), *op_sections(trace, count)]


def _widget(trace: Trace) -> "VBox":
    # anywidget takes a third of a second to import, and only a notebook needs it.
    from ipywidgets import VBox

    from nbkit.views.diff_table.widget import DiffTable
    from nbkit.views.linking import link_differences
    from nbkit.views.op_table.widget import OpTable

    differences, table = DiffTable(trace), OpTable(trace)
    link_differences(differences, table)
    return VBox([differences, table])


def _charts(trace: Trace) -> "list[Figure]":
    return [*worst_difference(trace), *optrace.VIEW.charts(trace)]


def _panels(contents: Contents) -> list[Panel]:
    differences = [diff_panel(contents)] if len(contents.trace.frames.get("diffs", ())) else []
    return [*differences, op_panel(contents)]


VIEW = View(
    widget=_widget,
    sections=_sections,
    charts=_charts,
    verdict=difference_verdict,
    found=verdict_sections,
    panels=_panels,
)
