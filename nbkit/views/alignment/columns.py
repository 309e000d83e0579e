"""The columns of the alignment table: both sides of each pair, its mark, verdict and errors."""

from typing import Any

import numpy as np

from nbkit.analysis.query.encoded import Columns, encode_frame, text_column
from nbkit.analysis.query.profile import log_spread
from nbkit.trace.trace import Trace
from nbkit.views.alignment.verdicts import HARMLESS, VERDICTS, rows_of, verdicts
from nbkit.views.summary.names import shown

ROW, STATUS, BAR = "row", "status", "output_error"
# What a pair is stands where nobody has to scroll: ops, names, sizes and by how much they differ.
FIRST = (
    ROW, "mark", STATUS, "output_error", "op", "right_op", "dtype", "shape", "name", "right_name", "local_error",
)  # fmt: skip
LAST = (
    "max_abs_error", "max_rel_error", "relation", "evidence", "right_dtype", "right_shape", "module", "right_module",
    "kind", "phase", "message", "cosine_similarity", "mean_abs_error", "max_ulp", "noise_ratio", "input_error",
    "allowed_error", "origin_id", "left_nan_count", "right_nan_count", "left_inf_count", "right_inf_count",
    "arguments", "source", "right_source", "left_id", "right_id",
)  # fmt: skip
# What the verdict and the mark say in other words.
HIDDEN = ("action", "error_class")
ALWAYS = (ROW, "mark", STATUS, "name", "right_name", "output_error", "local_error")
# Of the right side, what is shown only where it differs somewhere from the left one.
TWINS = {"right_dtype": "dtype", "right_shape": "shape", "right_module": "module", "right_op": "op"}
COUNTS = ("left_nan_count", "right_nan_count", "left_inf_count", "right_inf_count")
SEARCHED = ("name", "right_name", "op", "right_op", "module", "right_module", "source", "right_source")
CHOICES = {STATUS: "verdicts", "relation": "relations", "evidence": "evidence", "kind": "kinds", "phase": "phases"}
SCALES = {"output_error": "error", "local_error": "local error"}
SLIDER_BINS = 30
# How the table shows columns: label, width, what it holds.
LOOKS = {
    ROW: ("#", 56, "whole"),
    "mark": ("mark", 52, "text"),
    STATUS: ("verdict", 132, "text"),
    "name": ("left", 160, "text"),
    "right_name": ("right", 160, "text"),
    "op": ("left op", 136, "text"),
    "right_op": ("right op", 96, "text"),
    "output_error": ("error", 84, "metric"),
    "local_error": ("local error", 92, "metric"),
    "input_error": ("input error", 92, "metric"),
    "allowed_error": ("allowed", 84, "metric"),
    "relation": ("relation", 84, "text"),
    "evidence": ("evidence", 84, "text"),
    "dtype": ("left dtype", 76, "text"),
    "right_dtype": ("right dtype", 92, "text"),
    "shape": ("left shape", 92, "text"),
    "right_shape": ("right shape", 112, "text"),
    "module": ("left module", 176, "text"),
    "right_module": ("right module", 176, "text"),
    "source": ("left source", 210, "text"),
    "right_source": ("right source", 210, "text"),
    "origin_id": ("comes from #", 100, "whole"),
    "left_id": ("left result", 84, "whole"),
    "right_id": ("right result", 92, "whole"),
    "calls": ("results", 72, "whole"),
}
TOTALS = {ROW: "min", "output_error": "max", "local_error": "max", "max_abs_error": "max", "max_rel_error": "max"}
WAYS = {
    "status": ("verdict", [STATUS]),
    "op": ("ops", ["op", "right_op", STATUS]),
    "module": ("module", ["module", "right_module"]),
    "source": ("source line", ["source"]),
}


def encode_alignment(trace: Trace) -> Columns:
    """Returns the rows column by column, with their number and their verdict."""
    columns = encode_frame(rows_of(trace))
    numbers = {ROW: np.arange(len(columns), dtype=np.float64), **columns.numbers}
    return Columns(len(columns), {**columns.texts, STATUS: text_column(verdicts(trace))}, numbers)


def shown_columns(rows: Columns) -> list[str]:
    """Returns the columns to show, in order, without those that say nothing; unknown ones come last."""
    names = [name for name in (*rows.texts, *rows.numbers) if name not in HIDDEN]
    known = [name for name in (*FIRST, *LAST) if name in names]
    return [name for name in dict.fromkeys([*known, *names]) if name in ALWAYS or _says_something(rows, name)]


def choices(rows: Columns) -> dict[str, list[str]]:
    """Returns the columns that have a menu, with the texts to choose from; verdicts worst first."""
    texts = {name: [shown(str(text)) for text in rows.texts[name].values] for name in CHOICES if name in rows.texts}
    texts[STATUS].sort(key=VERDICTS.index)
    return {name: values for name, values in texts.items() if len(values) > 1}


def scales(rows: Columns) -> list[dict[str, Any]]:
    """Returns the errors that have a slider: name, label, and how their values are spread."""
    spreads = {name: log_spread(rows.number(name), SLIDER_BINS) for name in SCALES}
    return [
        {"name": name, "label": SCALES[name], **spread, "threshold": None, "above": None}
        for name, spread in spreads.items()
        if spread["low"] < spread["high"]
    ]


def differing(rows: Columns) -> "np.typing.NDArray[np.bool_]":
    """Returns the rows that both sides have and whose values do not agree."""
    status = rows.texts[STATUS]
    return status.where(~status.values.isin(HARMLESS).to_numpy(bool), missing=False)


def table_overview() -> dict[str, Any]:
    """Returns what makes the diff table's front end a table of pairs: its words, columns and groups."""
    sort = [{"column": name, "descending": True} for name in ("local_error", "output_error")]
    ways = {
        name: {"label": label, "sort": sort, "group": {"by": by, "totals": TOTALS}}
        for name, (label, by) in WAYS.items()
    }
    return {
        "natural": ROW,
        "words": {
            "label": "Results of both side by side",
            "nothing": "No result matches.",
            "all": "All results",
            "noun": "row",
            "wrong": "differ",
            "search": "Search names, ops, modules, source",
            "selected": "Selected pair",
        },
        "looks": {name: list(look) for name, look in LOOKS.items()},
        "ways": ways,
        "searched": list(SEARCHED),
    }


def _says_something(rows: Columns, name: str) -> bool:
    if name in rows.texts:
        return len(rows.texts[name].values) > (name in ("kind", "phase")) and _differs_from_left(rows, name)
    values = rows.numbers[name]
    known = values[~np.isnan(values)]
    return len(known) > 0 and (name not in COUNTS or bool(known.any()))


def _differs_from_left(rows: Columns, name: str) -> bool:
    """Tells whether a column of the right side differs from that of the left one in a row that both sides have."""
    if name not in TWINS or TWINS[name] not in rows.texts:
        return True
    right, left = rows.texts[name], rows.texts[TWINS[name]]
    is_pair = (right.codes >= 0) & (left.codes >= 0)
    return bool((right.column()[is_pair] != left.column()[is_pair]).any())
