"""Packs alignment and results as one block, from which the alignment table of a report answers without a kernel."""

from typing import Any

from nbkit.analysis.query.encoded import Columns, encode_frame
from nbkit.trace.trace import Trace
from nbkit.views.alignment.columns import ROW
from nbkit.views.alignment.detail import DIGITS, FACTS, FIELDS, FIGURES, MEANINGS, MOST_READ
from nbkit.views.alignment.graphs import row_nodes
from nbkit.views.alignment.source import AlignmentSource
from nbkit.views.alignment.verdicts import SIDES, results_of, side_names
from nbkit.views.op_table.report_data import all_modules
from nbkit.views.panels.pack import codes, decimals, numbers, pack, steps, texts
from nbkit.views.panels.rounded import METRIC_DIGITS
from nbkit.views.summary.names import shown

# Ids that grow from row to row.
STEPS = (ROW,)


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
