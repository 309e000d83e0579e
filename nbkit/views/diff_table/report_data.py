"""What the diff table of a report answers from, without a kernel: one block of the columns of `diffs`."""

import pandas as pd

from nbkit.numerics.metrics import COUNTS
from nbkit.numerics.noise_ratio import HARMLESS, STATUSES
from nbkit.trace.trace import Trace
from nbkit.views.diff_table.detail import HEAD
from nbkit.views.diff_table.report_captured import captured_data
from nbkit.views.diff_table.rows import WHOLE, shown_columns
from nbkit.views.diff_table.source import DiffSource
from nbkit.views.op_table.report_data import all_modules, page_limits
from nbkit.views.report.pack import Column, decimals, numbers, pack, steps, texts
from nbkit.views.report.rounded import METRIC_DIGITS, rounded


def diff_data(trace: Trace, *, values: bool) -> bytes:
    """The block of one trace, which report/answers/diff_answers.js of widgets/src reads; the same for the same trace.

    Metrics are kept to the three digits that are shown. Elements of tensors, and what was drawn of them, are in it only
    with `values`.
    """
    source = DiffSource(rounded(trace))
    diffs = source.trace.diffs
    return pack(
        {
            "table": source.table,
            "count": len(source.rows),
            "overview": source.overview(),
            "pages": page_limits(),
            "columns": shown_columns(source.rows),
            "whole": sorted(WHOLE),
            "fields": [name for name in diffs if name not in HEAD],
            "counts": list(COUNTS),
            "statuses": list(STATUSES),
            "harmless": list(HARMLESS),
            "modules": all_modules(source),
            "captured": captured_data(source, values=values),
            "texts": {name: texts(column) for name, column in source.rows.texts.items()},
            "numbers": {name: _numbers(source, diffs, name) for name in source.rows.numbers if name != "rank"},
        }
    )


def _numbers(source: DiffSource, diffs: pd.DataFrame, name: str) -> Column:
    if name == "op_id":
        return steps(diffs[name].to_numpy())
    values = source.rows.numbers[name]
    return decimals(values, METRIC_DIGITS) if diffs[name].dtype == "float64" else numbers(values)
