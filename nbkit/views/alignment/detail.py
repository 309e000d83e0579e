"""The detail of one row of the alignment: what came of it in words, its errors, and the facts of both sides."""

import json
from typing import Any

import pandas as pd

from nbkit.trace.trace import Trace
from nbkit.units import and_more, general, is_null
from nbkit.views.alignment.verdicts import SIDES, place_of, results_of, rows_of, side_names, verdicts
from nbkit.views.summary.names import shown
from nbkit.views.tables.raw import Cell, raw

MAX_TEXT = 2001
# What both sides share in a row; facts of one side stand in the table.
FIELDS = (
    "relation", "evidence", "output_error", "local_error", "input_error", "allowed_error", "max_abs_error",
    "mean_abs_error", "max_rel_error", "cosine_similarity", "max_ulp", "noise_ratio", "origin_id", "phase", "arguments",
)  # fmt: skip
# Of either side, from the frame results.
FACTS = (
    "kind", "name", "op", "module", "source", "dtype", "shape", "mean", "rms", "min", "max", "nan_count", "inf_count",
    "arguments", "reads", "is_output",
)  # fmt: skip
FIGURES = ("mean", "rms", "min", "max")
DIGITS = 6
MOST_READ = 12
MEANINGS = {
    "agrees": "Both sides agree here.",
    "diverges first": "This is the first result that differs though what it reads agrees.",
    "diverges here": "This result differs though what it reads agrees, or by more than that explains.",
    "inherited": "This result differs because it reads what differs already.",
    "differs": "This result differs; whether that begins here is not known.",
    "not known": "Whether both agree here is not known.",
    "left only": "Only the left side has this result.",
    "right only": "Only the right side has this result.",
}


def alignment_detail(trace: Trace, row: int) -> dict[str, Any]:
    """Returns what the detail pane shows of a row of `alignment`, as JSON data."""
    values = rows_of(trace).iloc[row]
    verdict = str(verdicts(trace).iloc[row])
    return {
        "row": row,
        "op_id": row,
        "op": " ↔ ".join(dict.fromkeys(shown(place_of(values, side)) for side in SIDES)),
        "fields": [["verdict", verdict], *([name, raw(values[name], MAX_TEXT)] for name in FIELDS)],
        # Where the diff table says why there are no values to draw, this says what came of the row.
        "why_not": " ".join(filter(None, (MEANINGS[verdict], sentence(values["message"])))),
        "plots": [],
        "worst": _both(trace, values),
    }


def sentence(message: Any) -> str:
    """Returns a message as a sentence; an empty text for none."""
    text = shown(message, MAX_TEXT) if isinstance(message, str) else ""
    return f"{text[:1].upper()}{text[1:].removesuffix('.')}." if text else ""


def _both(trace: Trace, values: "pd.Series[Any]") -> dict[str, Any]:
    results = results_of(trace)
    sides = [_facts(results, values[f"{side}_id"]) for side in SIDES]
    rows = [[name.replace("_", " "), *(side.get(name) for side in sides)] for name in FACTS]
    columns = ["fact", *(f"{side}: {shown(name)}" for side, name in zip(SIDES, side_names(trace), strict=True))]
    return {
        "caption": "Both sides",
        "label": "Facts of both sides",
        "columns": columns,
        "rows": [row for row in rows if any(text is not None for text in row[1:])],
        "numbers": [],
    }


def _facts(results: pd.DataFrame, result_id: Any) -> dict[str, Cell]:
    """Returns what is known of a result, as texts; nothing for a side that does not have it."""
    if is_null(result_id) or not 0 <= int(result_id) < len(results):
        return {}
    known = results.iloc[int(result_id)].to_dict()
    known["reads"] = names_read(results, known["reads"])
    known["is_output"] = "yes" if known["is_output"] else None
    return {name: _text(name, known[name]) for name in FACTS}


def names_read(results: pd.DataFrame, reads: Any) -> str | None:
    """Returns the names of the results that one reads, at most twelve; None for one that reads nothing."""
    ids = json.loads(reads) if isinstance(reads, str) else []
    names = [str(results["name"].iloc[one]) for one in ids[:MOST_READ] if 0 <= one < len(results)]
    return f"{', '.join(names)}{and_more(len(ids) - MOST_READ)}" if names else None


def _text(name: str, value: Any) -> str | None:
    if is_null(value):
        return None
    if name in FIGURES:
        return general(float(value), DIGITS)
    return shown(value, MAX_TEXT) if isinstance(value, str) else str(value)
