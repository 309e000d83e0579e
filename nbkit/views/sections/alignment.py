"""The tables of two executions side by side: counts, modules, the worst pairs, and what only one side has."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from nbkit.schema import ALIGNMENT
from nbkit.trace.trace import Trace
from nbkit.views.sections.section import Section, and_more, columns
from nbkit.views.summary.names import shown_module

MARKS = {"=": "agree", "~": "differ", "-": "left only", "+": "right only"}
WAYS = ("relation", "evidence")
ERRORS = ("local_error", "output_error")
WORST = columns("left, right, row: id, local error: number, error: number, class, message: sentence")
COUNTS = columns("=: count, ~: count, -: count, +: count, worst error: number")


def alignment_sections(trace: Trace, count: int) -> list[Section]:
    """Returns the tables, each with `count` rows at most; none for a trace without an alignment."""
    rows = ALIGNMENT.check(trace.frames.get("alignment", ALIGNMENT.frame()))
    if not len(rows):
        return []
    sections = [worst_section(rows, count), modules_section(rows, count), *_one_sided(rows, count), marks_section(rows)]
    return [section for section in sections if section.rows]


def worst_section(rows: pd.DataFrame, count: int) -> Section:
    """Returns the pairs that differ, those that add most first, then those that only pass a difference on."""
    differs = rows[rows["mark"] == "~"]
    keys = [-differs[name].fillna(-1.0).to_numpy() for name in reversed(ERRORS)]
    worst = differs.iloc[np.lexsort(keys)[:count]]
    values = [
        [_name(row, ""), _name(row, "right_"), number, *(row[name] for name in (*ERRORS, "error_class", "message"))]
        for number, row in worst.iterrows()
    ]
    return Section("Worst pairs", WORST, values, and_more(len(differs), count))


def modules_section(rows: pd.DataFrame, count: int) -> Section:
    """Returns the pairs of modules with their marks and worst error: those that differ, the worst first, then others.

    Where the right side knows no modules, those of the left one stand alone.
    """
    sides = {
        "left module": rows["module"].where(rows["left_id"].notna()),
        "right module": rows["right_module"].where(rows["right_id"].notna()),
    }
    names = [name for name, modules in sides.items() if modules.notna().any()]
    if not names:
        return Section("Modules", (), ())
    keys = pd.DataFrame({name: sides[name] for name in names})
    is_known = keys.notna().any(axis=1)
    groups = rows[is_known].groupby([keys.loc[is_known, name] for name in names], sort=False, dropna=False)
    marks = pd.DataFrame({mark: (rows.loc[is_known, "mark"] == mark).astype("int64") for mark in MARKS})
    table = marks.groupby(groups.ngroup(), sort=False).sum().set_axis(groups.size().index)
    table["worst"] = groups["output_error"].max()
    worst = np.where(table["~"] > 0, -table["worst"].fillna(0.0), 1.0)
    ordered = table.iloc[np.argsort(worst, kind="stable")]
    values = [
        [*map(_module, _as_tuple(key)), *row]
        for key, row in zip(ordered.index, ordered.to_numpy().tolist(), strict=True)
    ]
    return Section("Modules", (*columns(", ".join(names)), *COUNTS), values[:count], and_more(len(table), count))


def marks_section(rows: pd.DataFrame) -> Section:
    """Returns how many rows have each mark, and how those of both sides were found to be the same."""
    values = [
        [f"{mark} {meaning}", len(of), _ways(of)]
        for mark, meaning in MARKS.items()
        if len(of := rows[rows["mark"] == mark])
    ]
    kinds = columns("mark, results: count, how they are the same: sentence")
    return Section("Results by mark", kinds, values)


def _one_sided(rows: pd.DataFrame, count: int) -> Iterator[Section]:
    """Yields for either side the ops of which the other one has no result, the most frequent first."""
    for mark, side, prefix in (("-", "left", ""), ("+", "right", "right_")):
        mine = rows[rows["mark"] == mark]
        ops = mine[f"{prefix}op"].fillna(mine["op"]).fillna(mine["kind"]).fillna("unknown")
        explained = mine["relation"].notna().astype("int64")
        groups = mine.assign(named=ops, explained=explained).groupby("named", sort=False)
        table = pd.DataFrame(
            {"results": groups.size(), "explained": groups["explained"].sum(), "first": groups[f"{prefix}name"].first()}
        ).sort_values("results", ascending=False, kind="stable")
        values = [[op, *row] for op, row in zip(table.index, table.to_numpy().tolist(), strict=True)]
        kinds = columns("op, results: count, explained: count, the first one")
        yield Section(f"On the {side} only", kinds, values[:count], and_more(len(table), count))


def _ways(rows: pd.DataFrame) -> str:
    """Lists relations and evidence with their numbers."""
    counts = {name: rows[name].value_counts() for name in WAYS}
    parts = {name: ", ".join(f"{text} {number:,}" for text, number in of.items()) for name, of in counts.items()}
    return "; ".join(f"{name}: {text}" for name, text in parts.items() if text)


def _name(row: "pd.Series[Any]", prefix: str) -> object:
    return row[f"{prefix}name"] if isinstance(row[f"{prefix}name"], str) else row[f"{prefix}op"]


def _as_tuple(key: Any) -> tuple[Any, ...]:
    return key if isinstance(key, tuple) else (key,)


def _module(name: object) -> str | None:
    return shown_module(None, name) if isinstance(name, str) else None
