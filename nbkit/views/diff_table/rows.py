"""Rows of the diff table for a front end: which columns it shows, their cells as text, its choices and sliders."""

from collections.abc import Iterable
from math import log10
from typing import Any

import numpy as np

from nbkit.analysis.query.diff_table import METRICS
from nbkit.analysis.query.encoded import EncodedOps, Floats
from nbkit.numerics.metrics import COUNTS
from nbkit.numerics.noise_ratio import STATUSES
from nbkit.schema import DIFFS
from nbkit.views.summary.names import ROOT, shown

FIRST = ("rank", "op", "status", "noise_ratio", "max_abs_error", "max_rel_error")
# What comparing a whole step adds.
STEP = ("error_class", "local_error", "propagated_error", "total_error", "origin_op_id")
LAST = (
    "model", "module", "phase", "dtype", "shape", "role", "position", "message", "mismatch_count", "mismatch_fraction",
    "mean_abs_error", "cosine_similarity", "max_ulp", "bias_ratio", "rtol", "atol", "actual_nan_count",
    "expected_nan_count", "actual_inf_count", "expected_inf_count", "op_id", "source",
)  # fmt: skip
SHOWN_IF_VARIED = ("model", "role", "position", *COUNTS)
ALWAYS = (*FIRST, "module", "phase", "dtype", "shape", "message", "op_id")
WHOLE = frozenset(
    {"rank", "origin_op_id", *(column.name for column in DIFFS.columns if column.dtype in ("int64", "Int64"))}
)
CHOICES = ("status", "error_class", "phase", "dtype")
LABELS = {"status": "verdicts", "error_class": "error classes", "phase": "phases", "dtype": "dtypes"}
Row = list[int | float | str | None]


def shown_columns(rows: EncodedOps) -> list[str]:
    """The columns to show, in order; a column that is null throughout is left out, one that we do not know is last."""
    names = [name for name in (*rows.texts, *rows.numbers) if name != "message_values"]
    known = [name for name in (*FIRST, *STEP, *LAST) if name in names]
    return [name for name in dict.fromkeys([*known, *names]) if _is_worth_showing(rows, name)]


def number_columns(rows: EncodedOps) -> list[str]:
    """The columns of numbers, for those that a front end has no look of its own for."""
    return list(rows.numbers)


def choices(rows: EncodedOps) -> dict[str, list[str]]:
    """Columns of which one text can be chosen, with their texts; verdicts from the worst on."""
    names = [name for name in CHOICES if name in rows.texts]
    found = {name: [shown(str(text)) for text in rows.texts[name].values] for name in names}
    found["status"].sort(key=lambda text: STATUSES.index(text) if text in STATUSES else -1)
    return {name: texts for name, texts in found.items() if texts}


def scales(rows: EncodedOps) -> list[dict[str, Any]]:
    """Name, label, smallest and largest value above 0 of the metrics that have a slider."""
    found = []
    for name in METRICS:
        values = rows.numbers.get(name, np.zeros(0))
        known = values[np.isfinite(values) & (values > 0)]
        if len(known) and known.min() < known.max():
            found.append({"name": name, "label": name.replace("_", " "), "low": known.min(), "high": known.max()})
    return [{**one, "low": float(one["low"]), "high": float(one["high"])} for one in found]


def bars(rows: EncodedOps) -> Floats:
    """Length of each row's bar, 0 to 1: the logarithm of its noise ratio, from 1 to the largest."""
    ratio = rows.numbers["noise_ratio"]
    largest = max(log10(np.max(ratio[np.isfinite(ratio)], initial=10.0)), 1.0)
    with np.errstate(all="ignore"):
        return np.nan_to_num(np.clip(np.log10(ratio) / largest, 0, 1), nan=0.0)


def table_rows(rows: EncodedOps, places: Iterable[int], columns: list[str], lengths: Floats) -> list[Row]:
    """Per row: its place in `diffs`, nesting depth (0), length of its bar, then its cells."""
    return [
        [place, 0, round(float(lengths[place]), 4), *(cell(rows, place, name) for name in columns)] for place in places
    ]


def cell(rows: EncodedOps, place: int, column: str) -> str | None:
    """One cell as text; None where the value is missing."""
    if column in rows.texts:
        text = rows.texts[column].text_at(place)
        return ROOT if column == "module" and text == "" else None if text is None else shown(text)
    value = float(rows.numbers[column][place])
    if np.isnan(value):
        return None
    # Places are counted from 1.
    return str(int(value) + (column == "rank")) if column in WHOLE else number(value)


def number(value: float) -> str:
    """A metric for the eye."""
    return "0" if value == 0 else f"{value:.3g}"


def _is_worth_showing(rows: EncodedOps, column: str) -> bool:
    if column in ALWAYS:
        return True
    if column in rows.texts:
        return len(rows.texts[column].values) > (column in SHOWN_IF_VARIED)
    values = rows.numbers[column]
    known = values[~np.isnan(values)]
    return len(known) > 0 and (column not in SHOWN_IF_VARIED or bool((known != known[0]).any()))
