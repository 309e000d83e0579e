"""One graph of several: the rows of the frames that are its own, with ids from 0."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from nbkit.schema import TABLES

# Per frame with rows of a graph its columns of ids, and the frame whose rows they count.
IDS = {
    "nodes": {"node_id": "nodes", "part_id": "parts"},
    "edges": {"src": "nodes", "dst": "nodes"},
    "graph_tensors": {"node_id": "nodes"},
    "parts": {"part_id": "parts", "parent_id": "parts", "repeat_of": "parts"},
}


def one_graph(frames: Mapping[str, pd.DataFrame], graph: str) -> dict[str, pd.DataFrame]:
    """The frames with the rows of that graph alone; those that are of no graph stay as they are."""
    kept = {name: (frames[name]["graph"] == graph).to_numpy(bool) for name in ("nodes", "parts") if name in frames}
    numbers = {name: np.where(chosen, np.cumsum(chosen) - 1, -1) for name, chosen in kept.items()}
    found = dict(frames)
    for name, ids in IDS.items():
        if name in frames:
            rows = frames[name]
            mine = rows["graph"] == graph if "graph" in rows else kept["nodes"][rows["dst"].to_numpy()]
            rows = rows[mine].reset_index(drop=True)
            renumbered = {column: _renumbered(rows[column], numbers[of]) for column, of in ids.items() if of in numbers}
            found[name] = TABLES[name].check(rows.assign(**renumbered))
    return found


def _renumbered(ids: pd.Series, numbers: "np.typing.NDArray[np.int64]") -> pd.Series:
    """The ids as the rows are numbered now; null for a row that is gone."""
    new = pd.Series(numbers, dtype=ids.dtype).mask(numbers < 0) if ids.dtype == "Int64" else pd.Series(numbers)
    return ids.map(new).astype(ids.dtype)
