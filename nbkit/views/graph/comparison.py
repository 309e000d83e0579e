"""What the graph view needs of a comparison: the graphs of both sides, and which of their rows correspond."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from nbkit.schema import CORRESPONDENCE
from nbkit.trace.trace import Trace
from nbkit.views.summary.names import shown

SIDES = ("left", "right")
TEXTS = ("level", "relation", "message")


def comparison_sides(trace: Trace) -> list[dict[str, Any]] | None:
    """Name and graphs of either side, those that were compared first; None for a trace of one side."""
    rows = trace.frames.get("correspondence")
    said = [trace.meta.get(side) for side in SIDES]
    if rows is None or not len(rows) or not all(isinstance(one, Mapping) and one.get("graphs") for one in said):
        return None
    return [_side(trace, one, rows[f"{side}_id"], rows["level"]) for side, one in zip(SIDES, said, strict=True)]


def comparison_rows(trace: Trace) -> pd.DataFrame:
    """What the view needs of the frame `correspondence`."""
    rows = CORRESPONDENCE.check(trace.frames["correspondence"])
    return rows[["left_id", "right_id", *TEXTS]]


def _side(trace: Trace, said: Any, ids: pd.Series, levels: pd.Series) -> dict[str, Any]:
    compared = set()
    for frame, is_part in (("parts", True), ("nodes", False)):
        found = ids[(levels == "part") == is_part].dropna().astype("int64")
        compared |= set(trace.frames[frame]["graph"].iloc[found.to_numpy()])
    graphs = sorted(said["graphs"], key=lambda graph: graph not in compared)
    return {"name": shown(str(said.get("name") or said.get("source"))), "graphs": graphs}
