"""The tables of two executions side by side: counts, modules, the worst pairs, and what only one side has."""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from nbkit.schema import ALIGNMENT
from nbkit.trace.trace import Trace
from nbkit.views.sections.section import Column, Section, and_more, columns
from nbkit.views.summary.names import shown_module

MARKS = {"=": "agree", "~": "differ", "-": "left only", "+": "right only"}
WAYS = ("relation", "evidence")


def alignment_sections(trace: Trace, count: int) -> list[Section]:
    """Returns the tables, each with `count` rows at most; none for a trace without an alignment."""
    rows = ALIGNMENT.check(trace.frames.get("alignment", ALIGNMENT.frame()))
    if not len(rows):
        return []
    sections = [worst_section(rows, count), _modules(rows, count), *_one_sided(rows, count), marks_section(rows)]
    return [section for section in sections if section.rows]


def marks_section(rows: pd.DataFrame) -> Section:
    """Returns how many rows have each mark, and how those of both sides were found to be the same."""
    counts = rows["mark"].value_counts()
    values = [
        [mark, meaning, int(counts.get(mark, 0)), _ways(rows[rows["mark"] == mark])] for mark, meaning in MARKS.items()
    ]
    kinds = (Column("mark"), Column("meaning"), Column("results", "count"), Column("how they are the same", "sentence"))
    return Section("Results by mark", kinds, [row for row in values if row[2]])


def worst_section(rows: pd.DataFrame, count: int) -> Section:
    """Returns the pairs that differ, those that add most first, then those that only pass a difference on."""
    differs = rows[rows["mark"] == "~"]
    keys = differs[["local_error", "output_error"]].fillna(-1.0)
    order = np.lexsort((-keys["output_error"].to_numpy(), -keys["local_error"].to_numpy()))
    worst = differs.iloc[order[:count]]
    values = [
        [
            f"{number}",
            _name(row, ""),
            _name(row, "right_"),
            row["local_error"],
            row["output_error"],
            row["error_class"],
            row["message"],
        ]
        for number, row in worst.iterrows()
    ]
    kinds = (
        *columns("row, left, right"), *columns("local error, error", "number"), Column("class"), Column("message", "sentence"),
    )  # fmt: skip
    return Section("Worst pairs", kinds, values, and_more(len(differs), count))


def _modules(rows: pd.DataFrame, count: int) -> Section:
    """Returns the pairs of modules with their marks and worst error, in the order in which they ran."""
    left = rows["module"].where(rows["left_id"].notna())
    right = rows["right_module"].where(rows["right_id"].notna())
    known = pd.DataFrame({"left": left, "right": right, "mark": rows["mark"], "error": rows["output_error"]})
    known = known[left.notna() | right.notna()]
    if not len(known):
        return Section("Modules", (), ())
    keys = [known[side].astype(object).where(known[side].notna(), None) for side in ("left", "right")]
    code, names = pd.factorize(pd.MultiIndex.from_arrays(keys))
    table = pd.crosstab(code, known["mark"].to_numpy()).reindex(columns=[*MARKS], fill_value=0)
    worst = known["error"].groupby(code).max()
    is_wrong = worst.fillna(-1.0).to_numpy()
    # Modules that differ say most; the others stand in the order in which they ran.
    order = sorted(
        range(len(names)),
        key=lambda place: (table["~"].iloc[place] == 0, place if table["~"].iloc[place] == 0 else -is_wrong[place]),
    )
    values = [
        [*(_module(name) for name in names[place]), *(int(number) for number in table.iloc[place]), worst.iloc[place]]
        for place in order[:count]
    ]
    kinds = (*columns("left module, right module"), *columns("=, ~, -, +", "count"), Column("worst error", "number"))
    return Section("Modules", kinds, values, and_more(len(names), count))


def _one_sided(rows: pd.DataFrame, count: int) -> Iterator[Section]:
    """Yields for either side the ops of which the other one has no result, the most frequent first."""
    for mark, side, prefix in (("-", "left", ""), ("+", "right", "right_")):
        mine = rows[rows["mark"] == mark]
        if not len(mine):
            continue
        ops = mine[f"{prefix}op"].fillna(mine["op"]).fillna(mine["kind"]).fillna("unknown")
        groups = mine.assign(named=ops).groupby("named", sort=False)
        table = pd.DataFrame(
            {
                "results": groups.size(),
                "folded": groups["relation"].agg(lambda relation: int((relation == "folded").sum())),
                "first": groups[f"{prefix}name"].first(),
            }
        ).sort_values("results", ascending=False, kind="stable")
        values = [[op, row["results"], row["folded"] or None, row["first"]] for op, row in table.head(count).iterrows()]
        kinds = (
            Column("op"),
            Column("results", "count"),
            Column("inside another op", "count"),
            Column("the first one"),
        )
        yield Section(f"On the {side} only", kinds, values, and_more(len(table), count))


def _ways(rows: pd.DataFrame) -> str:
    """Lists relations and evidence with their numbers."""
    parts = []
    for name in WAYS:
        counts = rows[name].value_counts()
        if len(counts):
            parts.append(f"{name}: " + ", ".join(f"{text} {number:,}" for text, number in counts.items()))
    return "; ".join(parts)


def _name(row: "pd.Series[object]", prefix: str) -> object:
    return row[f"{prefix}name"] if isinstance(row[f"{prefix}name"], str) else row[f"{prefix}op"]


def _module(name: object) -> str | None:
    return shown_module(None, name) if isinstance(name, str) else None
