"""Says of each row of an alignment in a word what came of it: whether both agree, and if not, whose fault it is."""

from typing import Any

import numpy as np
import pandas as pd

from nbkit.schema import ALIGNMENT, RESULTS, TEXT
from nbkit.trace.trace import Trace

AGREES, FIRST, HERE, INHERITED = "agrees", "diverges first", "diverges here", "inherited"
DIFFERS, UNKNOWN, LEFT, RIGHT = "differs", "not known", "left only", "right only"
# Worst first, as a menu lists them.
VERDICTS = (FIRST, HERE, INHERITED, DIFFERS, UNKNOWN, LEFT, RIGHT, AGREES)
HARMLESS = (AGREES, LEFT, RIGHT)
# What ends with these words began in the row itself: there both sides read the same and make another result.
OWN = ("local", "both", "input")
SIDES = ("left", "right")


def rows_of(trace: Trace) -> pd.DataFrame:
    """Returns the frame `alignment`."""
    return ALIGNMENT.check(trace.frames["alignment"])


def results_of(trace: Trace) -> pd.DataFrame:
    """Returns the frame `results`, without rows where the trace has none."""
    return RESULTS.check(trace.frames.get("results", RESULTS.frame()))


def first_row(trace: Trace) -> int | None:
    """Returns the row in which both diverge first; None where they do not."""
    row = (trace.meta.get("first_divergence") or {}).get("row")
    return int(row) if row is not None and 0 <= int(row) < len(trace.frames["alignment"]) else None


def first_op_row(rows: pd.DataFrame) -> int:
    """Returns the first row of a result that an op made, behind inputs, weights and constants; 0 where none is."""
    is_op = rows["kind"].eq("op").fillna(False).to_numpy(bool)
    return int(is_op.argmax()) if len(is_op) else 0


def verdicts(trace: Trace) -> pd.Series:
    """Returns the verdict of each row of `alignment`, one of VERDICTS."""
    rows = rows_of(trace)
    marks, classes = rows["mark"].to_numpy(object), rows["error_class"].to_numpy(object)
    is_own = np.isin(classes.astype(str), OWN)
    other = np.where(rows["output_error"].notna(), DIFFERS, UNKNOWN)
    differs = np.where(is_own, HERE, np.where(classes == "propagated", INHERITED, other))
    words = np.select([marks == "=", marks == "-", marks == "+"], [AGREES, LEFT, RIGHT], differs).astype(object)
    first = first_row(trace)
    if first is not None and words[first] != AGREES:
        words[first] = FIRST
    return pd.Series(words, dtype=TEXT)


def counts_of(trace: Trace) -> dict[str, int]:
    """Returns how many rows have each mark."""
    counts = rows_of(trace)["mark"].value_counts()
    return {mark: int(counts.get(mark, 0)) for mark in "=~-+"}


def side_names(trace: Trace) -> list[str]:
    """Returns what the left and the right execution are called."""
    sides = [trace.meta.get(side) or {} for side in SIDES]
    return [str(about.get("name") or side) for side, about in zip(SIDES, sides, strict=True)]


def place_of(row: Any, side: str) -> str:
    """Names a result of one side: its name, else its op, else a dash for a side that does not have it."""
    if pd.isna(row[f"{side}_id"]):
        return "—"
    prefix = "right_" if side == "right" else ""
    known = (row[f"{prefix}name"], row[f"{prefix}op"])
    return next((str(name) for name in known if isinstance(name, str)), f"result {row[f'{side}_id']}")
