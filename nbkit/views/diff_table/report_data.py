"""Packs the columns of `diffs` as one block, from which the diff table of a report answers without a kernel."""

import pandas as pd

from nbkit.numerics.metrics import COUNTS
from nbkit.trace.trace import Trace
from nbkit.views.diff_table.detail import HEAD
from nbkit.views.diff_table.report_captured import captured_data
from nbkit.views.diff_table.source import DiffSource
from nbkit.views.op_table.report_data import all_modules
from nbkit.views.panels.pack import Column, decimals, numbers, pack, steps, texts
from nbkit.views.panels.rounded import METRIC_DIGITS, rounded


def diff_data(trace: Trace, *, values: bool) -> bytes:
    """Packs the block of one trace that widgets/src/report/answers/diff_answers.js answers from.

    Metrics are kept to the three digits that are shown. Elements of tensors, and what was drawn of them, are in it only
    with `values`.
    """
    source = DiffSource(rounded(trace))
    diffs = source.trace.diffs
    return pack(
        {
            "count": len(source.columns),
            "overview": source.overview(),
            "columns": source.shown_columns,
            "fields": [name for name in diffs if name not in HEAD],
            "counts": list(COUNTS),
            "modules": all_modules(source),
            "captured": captured_data(source, values=values),
            "texts": {name: texts(column) for name, column in source.columns.texts.items()},
            "numbers": {name: _numbers(source, diffs, name) for name in source.columns.numbers},
        }
    )


def _numbers(source: DiffSource, diffs: pd.DataFrame, name: str) -> Column:
    values = source.columns.numbers[name]
    if name == "op_id":
        return steps(values)
    is_metric = name in diffs and diffs[name].dtype == "float64"
    return decimals(values, METRIC_DIGITS) if is_metric else numbers(values)
