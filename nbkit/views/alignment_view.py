"""ALIGNMENT_VIEW is the view of traces of two executions side by side; a report has their table as one packed block."""

from dataclasses import replace
from typing import Any

from nbkit.analysis.query.encoded import Columns, encode_frame
from nbkit.schema import ALIGNMENT
from nbkit.trace.trace import Trace
from nbkit.views.alignment.columns import ROW
from nbkit.views.alignment.detail import DIGITS, FACTS, FIELDS, FIGURES, MEANINGS, MOST_READ
from nbkit.views.alignment.graphs import graph_trace, has_graphs, row_nodes
from nbkit.views.alignment.source import AlignmentSource
from nbkit.views.alignment.verdicts import (
    SIDES,
    first_op_row,
    first_row,
    place_of,
    results_of,
    rows_of,
    side_names,
    verdicts,
)
from nbkit.views.graph.panel import graph_panel
from nbkit.views.op_table.report_data import all_modules
from nbkit.views.ops_view import widget_named
from nbkit.views.panels.pack import codes, decimals, numbers, pack, steps, texts
from nbkit.views.panels.panel import Contents, Panel
from nbkit.views.panels.rounded import METRIC_DIGITS
from nbkit.views.plots.errors import errors_picture
from nbkit.views.plots.op_counts import draw_op_counts
from nbkit.views.plots.picture.static import static_pictures
from nbkit.views.sections.alignment import alignment_sections
from nbkit.views.sections.section import Column, Section
from nbkit.views.sections.writers import to_html
from nbkit.views.statements.alignment import alignment_statements
from nbkit.views.static_html.view import View
from nbkit.views.summary.names import shown

ROWS = 200
# Ids that grow from row to row.
STEPS = (ROW,)


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
    middle = first_op_row(rows) if first is None else first - count // 2
    start = max(min(middle, len(rows) - count), 0)
    few = rows.iloc[start : start + count]
    words = verdicts(trace).iloc[start : start + count]
    values = [
        [int(row), few["mark"].loc[row], word, few["output_error"].loc[row],
         *(fact for side, op in (("left", "op"), ("right", "right_op"))
           for fact in (few[op].loc[row], place_of(few.loc[row], side))), few["dtype"].loc[row], few["shape"].loc[row]]
        for row, word in zip(few.index, words, strict=True)
    ]  # fmt: skip
    left, right = side_names(trace)
    kinds = (
        Column("row", "id"), Column("mark"), Column("verdict"), Column("error", "number"), Column("left op"),
        Column(f"left: {left}"), Column("right op"), Column(f"right: {right}"), Column("dtype"), Column("shape"),
    )  # fmt: skip
    caption = "" if len(few) == len(rows) else f"rows {start:,} to {start + len(few) - 1:,} of {len(rows):,}"
    return Section("Side by side", kinds, values, caption)


def alignment_charts(trace: Trace) -> list[Any]:
    """Returns the charts of errors in call order, and of how often each op is there."""
    return [*static_pictures(trace, errors_picture), *([draw_op_counts(trace)] if has_graphs(trace) else [])]


ALIGNMENT_VIEW = View(
    widget=widget_named("alignment_and_graphs"),
    sections=alignment_sections,
    charts=lambda trace: [
        *static_pictures(trace, errors_picture),
        *([draw_op_counts(trace)] if has_graphs(trace) else []),
    ],
    calls=pairs_html,
    panels=alignment_panels,
    totals=alignment_sections,
    shows="alignment",
    nothing="No results were compared.",
    statements=alignment_statements,
)


def alignment_data(trace: Trace) -> bytes:
    """Packs the block of one trace that widgets/src/report/answers/alignment_answers.js answers from.

    Errors are kept to the three digits that are shown.
    """
    source, known = AlignmentSource(trace), row_nodes(trace)
    results = results_of(trace)
    return pack(
        {
            **_columns(source.columns, METRIC_DIGITS),
            "overview": source.overview(),
            "columns": source.shown_columns,
            "modules": all_modules(source),
            "detail": {
                "fields": list(FIELDS),
                "facts": list(FACTS),
                "figures": list(FIGURES),
                "meanings": MEANINGS,
                "most_read": MOST_READ,
                "sides": [f"{side}: {shown(name)}" for side, name in zip(SIDES, side_names(trace), strict=True)],
            },
            "results": _columns(encode_frame(results[["result_id", *FACTS]]), DIGITS - 2),
            "nodes": {"left": codes(known.left), "right": codes(known.right)},
        }
    )


def _columns(columns: Columns, digits: int) -> dict[str, Any]:
    return {
        "count": len(columns),
        "texts": {name: texts(column) for name, column in columns.texts.items()},
        "numbers": {
            name: steps(values)
            if name in STEPS
            else numbers(values)
            if name.endswith(("_id", "_count"))
            else decimals(values, digits)
            for name, values in columns.numbers.items()
        },
    }
