"""Both sides of a comparison in one set of frames: graphs under names of their own, ids that go on."""

from collections.abc import Mapping

import pandas as pd

from nbkit.analysis.graph_match.one_graph import IDS
from nbkit.schema import CORRESPONDENCE, TABLES

# What names a thing of one side, in every frame that has such a column.
NAMES = {"nodes": "graph", "graph_tensors": "graph", "parts": "graph", "modules": "model", "metrics": "name"}
LEVELS = {"part": "parts", "parameter": "nodes", "op": "nodes"}
Frames = Mapping[str, pd.DataFrame]


def merged(left: Frames, right: Frames, correspondence: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The frames of both graphs, the left one's rows first, and `correspondence` with the ids that they have there.

    Graphs, models and metrics that both sides have are told apart by "(left)" and "(right)" behind their names.
    """
    sizes = {of: len(left.get(of, ())) for of in ("nodes", "parts")}
    frames = {}
    for name in (*IDS, "modules", "metrics"):
        if name in left or name in right:
            one, other = (side[name] if name in side else TABLES[name].frame() for side in (left, right))
            moved = other.assign(**{column: other[column] + sizes[of] for column, of in IDS.get(name, {}).items()})
            if name not in IDS and one.equals(other):  # two graphs of one source
                moved = other.iloc[:0]
            elif name in NAMES:
                one, moved = _told_apart(one, moved, NAMES[name])
            frames[name] = TABLES[name].check(pd.concat([one, moved], ignore_index=True))
    shift = correspondence["level"].map(LEVELS).map(sizes).astype("Int64")
    moved = correspondence.assign(right_id=correspondence["right_id"] + shift)
    return {**frames, "correspondence": CORRESPONDENCE.check(moved)}


def _told_apart(left: pd.DataFrame, right: pd.DataFrame, column: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    both = set(left[column]) & set(right[column])
    if not both:
        return left, right
    told = []
    for side, frame in (("left", left), ("right", right)):
        names = frame[column]
        told.append(frame.assign(**{column: names.where(~names.isin(both), names + f" ({side})")}))
    return told[0], told[1]
