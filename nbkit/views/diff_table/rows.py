"""The columns of the diff table: which it shows, the choices of its texts and the sliders of its metrics."""

from typing import Any

import numpy as np

from nbkit.analysis.query.diff_table import METRICS
from nbkit.analysis.query.encoded import Columns
from nbkit.analysis.query.profile import log_spread
from nbkit.numerics.metrics import COUNTS
from nbkit.numerics.noise_ratio import STATUSES
from nbkit.units import general
from nbkit.views.summary.names import shown

# The rows are sorted by the noise ratio, which a narrow table has to show.
FIRST = ("rank", "op", "noise_ratio", "status")
# Where a mismatch has one.
PATTERN = ("pattern",)
SIZES = ("max_abs_error", "max_rel_error")
# What comparing a whole step adds.
STEP = ("error_class", "local_error", "propagated_error", "total_error", "origin_op_id")
LAST = (
    "model", "module", "phase", "dtype", "shape", "role", "position", "message", "mismatch_count", "mismatch_fraction",
    "mean_abs_error", "cosine_similarity", "max_ulp", "bias_ratio", "rtol", "atol", "actual_nan_count",
    "expected_nan_count", "actual_inf_count", "expected_inf_count", "op_id", "source",
)  # fmt: skip
# What marks the message, and data that the detail shows.
HIDDEN = ("message_values", "pattern_evidence")
SHOWN_IF_VARIED = ("model", "role", "position", *COUNTS)
# Of the histogram behind a slider, which has twice as many steps.
SLIDER_BINS = 30
ALWAYS = (*FIRST, *SIZES, "module", "phase", "dtype", "shape", "message", "op_id")
CHOICES = ("status", "pattern", "error_class", "phase", "dtype")
LABELS = {
    "status": "verdicts", "pattern": "patterns", "error_class": "error classes", "phase": "phases", "dtype": "dtypes"
}  # fmt: skip


def shown_columns(rows: Columns) -> list[str]:
    """Returns the columns to show, in order, without those that are null throughout; unknown ones come last."""
    names = [name for name in (*rows.texts, *rows.numbers) if name not in HIDDEN]
    known = [name for name in (*FIRST, *PATTERN, *SIZES, *STEP, *LAST) if name in names]
    return [name for name in dict.fromkeys([*known, *names]) if _is_worth_showing(rows, name)]


def choices(rows: Columns) -> dict[str, list[str]]:
    """Returns the columns that have a menu, with the texts to choose from; verdicts worst first."""
    names = [name for name in CHOICES if name in rows.texts]
    texts = {name: [shown(str(text)) for text in rows.texts[name].values] for name in names}
    texts["status"].sort(key=lambda text: STATUSES.index(text) if text in STATUSES else -1)
    return {name: values for name, values in texts.items() if values}


def scales(rows: Columns, threshold: float | None) -> list[dict[str, Any]]:
    """Returns the metrics that have a slider: name, label, how their values are spread, and where the verdict is.

    The spread is that of log_spread(). `threshold` and `above`, the number of values above it, are null for all but
    the noise ratio.
    """
    metrics = []
    for name in METRICS:
        spread = log_spread(rows.numbers.get(name, np.zeros(0)), SLIDER_BINS)
        if spread["low"] < spread["high"]:
            limit = threshold if name == "noise_ratio" else None
            above = None if limit is None else int((rows.numbers[name] > limit).sum())
            label = name.replace("_", " ")
            metrics.append({"name": name, "label": label, **spread, "threshold": limit, "above": above})
    return metrics


def number(value: float) -> str:
    """Formats a metric."""
    return "0" if value == 0 else general(value, 3)


def _is_worth_showing(rows: Columns, column: str) -> bool:
    if column in ALWAYS:
        return True
    if column in rows.texts:
        return len(rows.texts[column].values) > (column in SHOWN_IF_VARIED)
    values = rows.numbers[column]
    known = values[~np.isnan(values)]
    return len(known) > 0 and (column not in SHOWN_IF_VARIED or bool((known != known[0]).any()))
