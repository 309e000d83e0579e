"""Colors the graphs of two executions by what came of each result, and says which of their nodes are the same."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from nbkit.schema import CORRESPONDENCE, NODES, OVERLAY, PARTS
from nbkit.schema.table import nullable
from nbkit.trace.trace import Trace
from nbkit.units import general, is_null
from nbkit.views.alignment.verdicts import (
    AGREES,
    DIFFERS,
    FIRST,
    HERE,
    INHERITED,
    LEFT,
    RIGHT,
    SIDES,
    UNKNOWN,
    results_of,
    rows_of,
    verdicts,
)

Ids = npt.NDArray[np.int64]
ONE_SIDE = "one side only"
# Of a part the first of these that is inside; a name that only one side has says least of it.
CLASSES = (FIRST, HERE, INHERITED, DIFFERS, UNKNOWN, AGREES, ONE_SIDE)
# Hue and pattern of each class, as the graph view names them.
LOOKS = {
    FIRST: ("magenta", "slash"),
    HERE: ("magenta", ""),
    INHERITED: ("amber", ""),
    DIFFERS: ("amber", "slash"),
    UNKNOWN: ("brown", "dots"),
    AGREES: ("gray", ""),
    ONE_SIDE: ("blue", "dots"),
}
COLUMN = "agreement"
CAPTION = "agreement with the other side; of a part the worst inside"
# Kinds of nodes that correspond as parameters.
PARAMETERS = ("parameter", "buffer")
# Relations that the frame correspondence has, too.
RELATIONS = ("same", "cast", "permute", "reshape")


@dataclass(frozen=True)
class RowNodes:
    """Holds the node of either side of each row of `alignment`, -1 where its graph has none of that name."""

    left: Ids
    right: Ids


def has_graphs(trace: Trace) -> bool:
    """Tells whether a trace has a graph of either side."""
    return len(trace.frames.get("nodes", ())) > 0


def graph_trace(trace: Trace) -> Trace:
    """Returns the graphs of a trace, colored by what came of each result, with the pairs of the alignment as matches.

    Nodes are those of the results of their names.
    """
    frames, known = trace.frames, row_nodes(trace)
    sides = graphs_by_side(trace)
    meta = {side: {**(trace.meta.get(side) or {}), "graphs": graphs} for side, graphs in sides.items()}
    looks = {"column": COLUMN, "by": "op_id", "how": None, "is_inclusive": True, "caption": CAPTION}
    is_pair = all(sides.values())
    colored = {
        **looks,
        "looks": {name: list(look) for name, look in LOOKS.items()},
        **({"sides": [looks] * 2} if is_pair else {}),
    }
    names = [name for name in ("nodes", "edges", "graph_tensors", "parts", "modules") if name in frames]
    made = {name: frames[name] for name in names} | {"overlay": _overlay(trace, known)}
    if is_pair:
        made["correspondence"] = _correspondence(trace, known)
    return Trace(made, {**trace.meta, **meta, "notes": [], "overlay": colored})


def graphs_by_side(trace: Trace) -> dict[str, list[str]]:
    """Returns the names of the graphs of either side, as meta has them, else by their names, else by their order."""
    told = {side: list((trace.meta.get(side) or {}).get("graphs") or []) for side in SIDES}
    if all(told.values()):
        return told
    graphs = [str(name) for name in trace.frames["nodes"]["graph"].unique()]
    named = {
        side: [name for name in graphs if name.startswith(f"{side}: ") or name.endswith(f"({side})")] for side in SIDES
    }
    if any(named.values()):
        return named
    return {"left": graphs[:1], "right": graphs[1:]}


def row_nodes(trace: Trace) -> RowNodes:
    """Returns the nodes of the rows of `alignment`; none where the trace has no graphs."""
    rows = rows_of(trace)
    if not has_graphs(trace):
        none = np.full(len(rows), -1, np.int64)
        return RowNodes(none, none)
    sides = graphs_by_side(trace)
    return RowNodes(*(_nodes_of(trace, rows[f"{side}_id"], sides[side]) for side in SIDES))


def _nodes_of(trace: Trace, ids: pd.Series, graphs: list[str]) -> Ids:
    nodes, results = NODES.check(trace.frames["nodes"]), results_of(trace)
    mine = nodes[nodes["graph"].isin(graphs)].drop_duplicates("name").dropna(subset=["name"])
    of_name = pd.Series(mine["node_id"].to_numpy(), index=mine["name"].to_numpy(object))
    names = results["name"].astype(object).reindex(ids.fillna(-1).astype("int64")).to_numpy(object)
    found = of_name.reindex(names).fillna(-1).to_numpy(np.int64)
    return np.where(ids.notna().to_numpy(bool), found, -1)


def _overlay(trace: Trace, known: RowNodes) -> pd.DataFrame:
    words = verdicts(trace).replace({LEFT: ONE_SIDE, RIGHT: ONE_SIDE}).map(CLASSES.index).to_numpy(np.int64)
    count = len(trace.frames["nodes"])
    nodes = np.full(count, len(CLASSES), np.int64)
    for ids in (known.left, known.right):
        np.minimum.at(nodes, ids[ids >= 0], words[ids >= 0])
    rows = [("node_id", nodes), ("part_id", _parts(trace, nodes))]
    frames = [
        OVERLAY.frame(
            {
                key: (found := np.flatnonzero(ranks < len(CLASSES))),
                "category": [CLASSES[rank] for rank in ranks[found]],
                "rows": np.ones(len(found), np.int64),
            }
        )
        for key, ranks in rows
    ]
    return OVERLAY.check(pd.concat(frames, ignore_index=True))


def _parts(trace: Trace, nodes: Ids) -> Ids:
    """Returns the worst class inside each part."""
    parts = PARTS.check(trace.frames.get("parts", PARTS.frame()))
    worst = np.full(len(parts), len(CLASSES), np.int64)
    inside = trace.frames["nodes"]["part_id"].fillna(-1).to_numpy(np.int64)
    np.minimum.at(worst, inside[inside >= 0], nodes[inside >= 0])
    parents = parts["parent_id"].fillna(-1).to_numpy(np.int64)
    has_parent = parents >= 0
    while True:
        before = worst.copy()
        np.minimum.at(worst, parents[has_parent], worst[has_parent])
        if (worst == before).all():
            return worst


def _correspondence(trace: Trace, known: RowNodes) -> pd.DataFrame:
    """Returns the pairs of the alignment, and of what it says nothing what the trace knows already."""
    made = CORRESPONDENCE.frame(_pairs(trace, known))
    before = CORRESPONDENCE.check(trace.frames.get("correspondence", CORRESPONDENCE.frame()))
    is_told = before["left_id"].isin(made["left_id"].dropna()) | before["right_id"].isin(made["right_id"].dropna())
    kept = before[(before["level"] == "part") | ~is_told]
    return CORRESPONDENCE.check(pd.concat([kept, made], ignore_index=True))


def _pairs(trace: Trace, known: RowNodes) -> dict[str, Any]:
    """Returns the rows of the alignment that have a node, as columns of `correspondence`."""
    nodes, chosen = NODES.check(trace.frames["nodes"]), (known.left >= 0) | (known.right >= 0)
    left, right = known.left[chosen], known.right[chosen]
    rows, words = rows_of(trace)[chosen], verdicts(trace)[chosen]
    is_left, is_pair = left >= 0, (left >= 0) & (right >= 0)
    kinds = nodes["kind"].to_numpy(object)[np.where(is_left, left, right)]
    relations = rows["relation"].to_numpy(object)
    relations = np.where(np.isin(relations.astype(str), RELATIONS), relations, "other")
    pairs: dict[str, Any] = {
        "level": np.where(np.isin(kinds.astype(str), PARAMETERS), "parameter", "op"),
        "left_id": nullable(left),
        "right_id": nullable(right),
        "action": np.where(is_pair, "match", np.where(is_left, "left_only", "right_only")),
        "relation": pd.Series(relations, dtype=object).where(is_pair, None).array,
        "evidence": rows["evidence"].array,
        "message": [_message(word, error) for word, error in zip(words, rows["output_error"], strict=True)],
    }
    for side, ids in (("left", left), ("right", right)):
        for name in ("name", "shape", "dtype"):
            pairs[f"{side}_{name}"] = nodes[name].reindex(np.where(ids >= 0, ids, len(nodes))).array
    return pairs


def _message(verdict: str, error: float) -> str | None:
    """Says what came of a pair; nothing where both agree."""
    if verdict == AGREES:
        return None
    return verdict if is_null(error) else f"{verdict}, error {general(error, 3)}"
