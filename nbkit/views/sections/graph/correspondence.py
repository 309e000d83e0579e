"""The tables of two graphs side by side: what of them corresponds, and what only one of them has."""

import pandas as pd

from nbkit.schema import CORRESPONDENCE
from nbkit.trace.trace import Trace
from nbkit.views.sections.section import Section, columns
from nbkit.views.summary.names import shown_module

ACTIONS = ("match", "left_only", "right_only")
SIDES = columns("both, left only, right only", "count")
LEVELS = {"part": "parts", "parameter": "parameters", "state": "other state", "op": "ops"}


def correspondence_sections(trace: Trace, count: int) -> list[Section]:
    """Returns the tables, each with `count` rows at most; none for a trace of one graph."""
    rows = CORRESPONDENCE.check(trace.frames.get("correspondence", CORRESPONDENCE.frame()))
    if not len(rows):
        return []
    sections = [_levels(rows), _parts(trace, rows, count), _parameters(rows, count), _ops(rows, count)]
    return [section for section in sections if section.rows]


def _levels(rows: pd.DataFrame) -> Section:
    """Returns how many parts, parameters and ops both have, and how many only one; other state if there is some."""
    counts = counted_actions(rows, "level").reindex([*LEVELS], fill_value=0)
    values = [[LEVELS[level], *numbers] for level, *numbers in counts.itertuples() if level != "state" or any(numbers)]
    return Section("Correspondence", [*columns("level"), *SIDES], values)


def _parts(trace: Trace, rows: pd.DataFrame, count: int) -> Section:
    """Returns parts with a role side by side, pairs first, with how many parameters and direct ops correspond."""
    parts = rows[(rows["level"] == "part") & rows["role"].notna()]
    parts = parts.iloc[parts["action"].map(ACTIONS.index).argsort(kind="stable")].head(count)
    inside = _inside(trace, rows)
    values = []
    for _, row in parts.iterrows():
        ids = [row[f"{side}_id"] for side in ("left", "right")]
        counts = inside.reindex([part for part in ids if not pd.isna(part)]).fillna(0).sum()
        names = [_name(row[f"{side}_name"]) for side in ("left", "right")]
        values.append([*names, row["role"], row["phase"], *(counts[action] for action in ACTIONS)])
    kinds = [*columns("left graph, right graph, role, phase: phase"), *SIDES]
    return Section("Side by side", kinds, values)


def _inside(trace: Trace, rows: pd.DataFrame) -> pd.DataFrame:
    """Counts for each part of either side the parameters and direct ops with each action; a match counts left."""
    nodes = rows[rows["level"] != "part"]
    ids = nodes["left_id"].fillna(nodes["right_id"]).astype("int64")
    parts = trace.nodes["part_id"].set_axis(trace.nodes["node_id"]).reindex(ids).to_numpy()
    counts = pd.crosstab(pd.Series(parts, name="part"), nodes["action"].to_numpy())
    return counts.reindex(columns=ACTIONS, fill_value=0)


def _parameters(rows: pd.DataFrame, count: int) -> Section:
    """Returns parameters that are not equal on both sides, one-sided ones last."""
    state = rows[rows["level"] == "parameter"]
    differing = pd.concat([state[state["message"].notna()], state[state["action"] != "match"]]).head(count)
    values = [
        [_name(row["left_name"]), _name(row["right_name"]), row["relation"], row["message"]]
        for _, row in differing.iterrows()
    ]
    kinds = columns("left graph, right graph, relation, what differs: sentence")
    return Section("Parameters that differ", kinds, values)


def _ops(rows: pd.DataFrame, count: int) -> Section:
    """Returns the types of ops that only one side has, most frequent first."""
    alone = rows[(rows["level"] == "op") & (rows["action"] != "match")]
    counts = counted_actions(alone.assign(op=alone["left_op"].fillna(alone["right_op"])), "op")
    ordered = counts.loc[counts.sum(axis=1).sort_values(ascending=False, kind="stable").index].head(count)
    values = [[op, left, right] for op, _, left, right in ordered.itertuples()]
    return Section("Ops of one side only", [*columns("op"), *SIDES[1:]], values)


def counted_actions(rows: pd.DataFrame, by: str) -> pd.DataFrame:
    """Returns how many rows have each action, by the values of a column."""
    return pd.crosstab(rows[by], rows["action"]).reindex(columns=ACTIONS, fill_value=0)


def _name(value: object) -> str | None:
    return shown_module(None, value) if isinstance(value, str) else None
