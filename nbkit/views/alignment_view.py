"""ALIGNMENT_VIEW is the view of traces of two executions side by side."""

from dataclasses import replace

from nbkit.schema import ALIGNMENT
from nbkit.trace.trace import Trace
from nbkit.views.alignment.graphs import graph_trace, has_graphs
from nbkit.views.alignment.report_data import alignment_data
from nbkit.views.alignment.verdicts import first_row, place_of, rows_of, side_names, verdicts
from nbkit.views.graph.panel import graph_panel
from nbkit.views.ops_view import widget_named
from nbkit.views.panels.panel import Contents, Panel
from nbkit.views.plots.errors import errors_picture
from nbkit.views.plots.picture.static import static_pictures
from nbkit.views.sections.alignment import alignment_sections
from nbkit.views.sections.section import Column, Section
from nbkit.views.sections.writers import to_html
from nbkit.views.statements.alignment import alignment_statements
from nbkit.views.static_html.view import View

ROWS = 200


def alignment_panels(contents: Contents) -> list[Panel]:
    """Returns the table, which shows its rows around the first divergence where no script runs, and the graphs."""
    trace = contents.trace
    static = f'<div class="nbkit-static">{pairs_html(trace, ROWS)}</div>'
    table = Panel("alignment_table", "Results of both side by side", alignment_data(trace), static)
    graphs = [replace(graph_panel(Contents(graph_trace(trace))), title="Graphs of both")] if has_graphs(trace) else []
    return [table, *graphs]


def pairs_html(trace: Trace, count: int) -> str:
    """Writes `count` rows of the alignment side by side, from some before the first divergence on."""
    return to_html([pairs_section(trace, count)])


def pairs_section(trace: Trace, count: int) -> Section:
    """Returns rows of the alignment side by side, from some before the first divergence on."""
    rows = rows_of(trace) if "alignment" in trace.frames else ALIGNMENT.frame()
    first = first_row(trace) if len(rows) else None
    start = 0 if first is None else max(min(first - count // 2, len(rows) - count), 0)
    few = rows.iloc[start : start + count]
    words = verdicts(trace).iloc[start : start + count]
    values = [
        [int(row), few["mark"].loc[row], word, *(place_of(few.loc[row], side) for side in ("left", "right")),
         few["output_error"].loc[row]]
        for row, word in zip(few.index, words, strict=True)
    ]  # fmt: skip
    left, right = side_names(trace)
    kinds = (
        Column("row", "id"), Column("mark"), Column("verdict"), Column(f"left: {left}"), Column(f"right: {right}"),
        Column("error", "number"),
    )  # fmt: skip
    caption = "" if len(few) == len(rows) else f"rows {start:,} to {start + len(few) - 1:,} of {len(rows):,}"
    return Section("Side by side", kinds, values, caption)


ALIGNMENT_VIEW = View(
    widget=widget_named("alignment_and_graphs"),
    sections=alignment_sections,
    charts=lambda trace: static_pictures(trace, errors_picture),
    calls=pairs_html,
    panels=alignment_panels,
    totals=alignment_sections,
    shows="alignment",
    nothing="No results were compared.",
    statements=alignment_statements,
)
