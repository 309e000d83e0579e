"""Cuts the frames of one graph out of several, and joins the frames of both sides of a comparison."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from nbkit.schema import CORRESPONDENCE, TABLES

# Per frame with rows of a graph its columns of ids, and the frame whose rows they count.
IDS = {
    "nodes": {"node_id": "nodes", "part_id": "parts"},
    "edges": {"src": "nodes", "dst": "nodes"},
    "graph_tensors": {"node_id": "nodes"},
    "parts": {"part_id": "parts", "parent_id": "parts", "repeat_of": "parts"},
}
# What names a thing of one side, in every frame that has such a column.
NAMES = {"nodes": "graph", "graph_tensors": "graph", "parts": "graph", "modules": "model", "metrics": "name"}
LEVELS = {"part": "parts", "parameter": "nodes", "state": "nodes", "op": "nodes"}
Frames = Mapping[str, pd.DataFrame]


def one_graph(frames: Mapping[str, pd.DataFrame], graph: str) -> dict[str, pd.DataFrame]:
    """Returns the frames with the rows of that graph alone; those that are of no graph stay as they are."""
    kept = {name: (frames[name]["graph"] == graph).to_numpy(bool) for name in ("nodes", "parts") if name in frames}
    numbers = {name: np.where(chosen, np.cumsum(chosen) - 1, -1) for name, chosen in kept.items()}
    result = dict(frames)
    for name, ids in IDS.items():
        if name in frames:
            rows = frames[name]
            mine = rows["graph"] == graph if "graph" in rows else kept["nodes"][rows["dst"].to_numpy()]
            rows = rows[mine].reset_index(drop=True)
            renumbered = {column: _renumbered(rows[column], numbers[of]) for column, of in ids.items() if of in numbers}
            result[name] = TABLES[name].check(rows.assign(**renumbered))
    return result


def _renumbered(ids: pd.Series, numbers: "np.typing.NDArray[np.int64]") -> pd.Series:
    """Returns the ids as the rows are numbered now; null for a row that is gone."""
    new = pd.Series(numbers, dtype=ids.dtype).mask(numbers < 0) if ids.dtype == "Int64" else pd.Series(numbers)
    return ids.map(new).astype(ids.dtype)


def merged(left: Frames, right: Frames, correspondence: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Returns the frames of both graphs, the left one's rows first, and `correspondence` with the ids used there.

    Graphs, models and metrics that both sides have are told apart by "(left)" and "(right)" behind their names.
    """
    sizes = {of: len(left.get(of, ())) for of in ("nodes", "parts")}
    frames = {}
    for name in (*IDS, "modules", "metrics"):
        if name in left or name in right:
            kept, added = (side[name] if name in side else TABLES[name].frame() for side in (left, right))
            moved = added.assign(**{column: added[column] + sizes[of] for column, of in IDS.get(name, {}).items()})
            if name not in IDS and kept.equals(added):  # two graphs of one source
                moved = added.iloc[:0]
            elif name in NAMES:
                kept, moved = _with_side_names(kept, moved, NAMES[name])
            frames[name] = TABLES[name].check(pd.concat([kept, moved], ignore_index=True))
    shift = correspondence["level"].map(LEVELS).map(sizes).astype("Int64")
    moved = correspondence.assign(right_id=correspondence["right_id"] + shift)
    return {**frames, "correspondence": CORRESPONDENCE.check(moved)}


def _with_side_names(left: pd.DataFrame, right: pd.DataFrame, column: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    both = set(left[column]) & set(right[column])
    if not both:
        return left, right
    renamed = []
    for side, frame in (("left", left), ("right", right)):
        names = frame[column]
        renamed.append(frame.assign(**{column: names.where(~names.isin(both), names + f" ({side})")}))
    return renamed[0], renamed[1]
