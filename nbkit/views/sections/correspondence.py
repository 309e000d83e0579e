"""The tables of two graphs side by side: what of them corresponds, and what only one of them has."""

import pandas as pd

from nbkit.schema import CORRESPONDENCE
from nbkit.trace.trace import Trace
from nbkit.views.sections.section import Section
from nbkit.views.summary import units
from nbkit.views.summary.names import shown, shown_module

ACTIONS = ("match", "left_only", "right_only")
SIDES = ("both", "left only", "right only")
LEVELS = {"part": "parts", "parameter": "parameters", "op": "ops"}


def correspondence_sections(trace: Trace, count: int) -> list[Section]:
    """The tables, each with `count` rows at most; none for a trace of one graph."""
    rows = CORRESPONDENCE.check(trace.frames.get("correspondence", CORRESPONDENCE.frame()))
    if not len(rows):
        return []
    sections = [_levels(rows), _parts(trace, rows, count), _parameters(rows, count), _ops(rows, count)]
    return [section for section in sections if section.rows]


def _levels(rows: pd.DataFrame) -> Section:
    """How many parts, parameters and ops both have, and how many only one."""
    counts = counted_actions(rows, "level").reindex([*LEVELS], fill_value=0)
    texts = [[LEVELS[level], *map(units.count, numbers)] for level, *numbers in counts.itertuples()]
    return Section("Correspondence", "level", SIDES, texts)


def _parts(trace: Trace, rows: pd.DataFrame, count: int) -> Section:
    """Parts with a role side by side, pairs first, with how many parameters and ops right in them correspond."""
    parts = rows[(rows["level"] == "part") & rows["role"].notna()]
    parts = parts.iloc[parts["action"].map(ACTIONS.index).argsort(kind="stable")].head(count)
    inside = _inside(trace, rows)
    texts = []
    for _, row in parts.iterrows():
        ids = [row[f"{side}_id"] for side in ("left", "right")]
        counts = inside.reindex([one for one in ids if not pd.isna(one)]).fillna(0).sum()
        names = [_name(row[f"{side}_name"]) for side in ("left", "right")]
        texts.append(
            [
                names[0],
                names[1],
                _text(row["role"]),
                _text(row["phase"]),
                *(units.count(counts[one]) for one in ACTIONS),
            ]
        )
    return Section("Side by side", "left graph", ("right graph", "role", "phase", *SIDES), texts)


def _inside(trace: Trace, rows: pd.DataFrame) -> pd.DataFrame:
    """Per part of either side the parameters and ops right in it that have each action; a match counts on the left."""
    nodes = rows[rows["level"] != "part"]
    ids = nodes["left_id"].fillna(nodes["right_id"]).astype("int64")
    parts = trace.nodes["part_id"].set_axis(trace.nodes["node_id"]).reindex(ids).to_numpy()
    counts = pd.crosstab(pd.Series(parts, name="part"), nodes["action"].to_numpy())
    return counts.reindex(columns=ACTIONS, fill_value=0)


def _parameters(rows: pd.DataFrame, count: int) -> Section:
    """Parameters that are not equal on both sides, one-sided ones last."""
    state = rows[rows["level"] == "parameter"]
    differing = pd.concat([state[state["message"].notna()], state[state["action"] != "match"]]).head(count)
    texts = [
        [_name(row["left_name"]), _name(row["right_name"]), _text(row["relation"]), _text(row["message"])]
        for _, row in differing.iterrows()
    ]
    return Section("Parameters that differ", "left graph", ("right graph", "relation", "what differs"), texts)


def _ops(rows: pd.DataFrame, count: int) -> Section:
    """The types of ops that only one side has, most frequent first."""
    alone = rows[(rows["level"] == "op") & (rows["action"] != "match")]
    counts = counted_actions(alone.assign(op=alone["left_op"].fillna(alone["right_op"])), "op")
    ordered = counts.loc[counts.sum(axis=1).sort_values(ascending=False, kind="stable").index].head(count)
    texts = [[shown(str(op)), units.count(left), units.count(right)] for op, _, left, right in ordered.itertuples()]
    return Section("Ops of one side only", "op", SIDES[1:], texts)


def counted_actions(rows: pd.DataFrame, by: str) -> pd.DataFrame:
    """How many rows have each action, by the values of a column."""
    return pd.crosstab(rows[by], rows["action"]).reindex(columns=ACTIONS, fill_value=0)


def _name(value: object) -> str:
    return shown_module(None, value) if isinstance(value, str) else units.NULL


def _text(value: object) -> str | None:
    return shown(value) if isinstance(value, str) else None
