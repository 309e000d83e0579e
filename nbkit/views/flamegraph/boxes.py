"""Lays out the widest few hundred boxes of a static flame graph: equal call paths merged, heaviest to the left."""

import numpy as np
import numpy.typing as npt
import pandas as pd

from nbkit.schema import OPS
from nbkit.views.flamegraph.merged_calls import merged_calls

Ids = npt.NDArray[np.int64]


def flame_boxes(ops: pd.DataFrame, count: int = 300) -> pd.DataFrame:
    """Returns the widest boxes, each after the one it stands on: op, phase, calls, depth, left_us, total_us, self_us.

    Calls of the same op, phase and level inside the same box are one box; work on a device is left out, and each thread
    has its own boxes at the bottom. `left_us` counts from the left edge, where the heaviest of each depth stands first.
    """
    host = OPS.check(ops)[(ops["level"] != "kernel").to_numpy(bool)]
    merged, below = _merged(host)
    totals = pd.DataFrame(
        {
            "row": pd.Series(np.arange(len(host))).groupby(merged, sort=True).first(),
            "calls": np.bincount(merged, minlength=len(below)),
            "total_us": np.bincount(merged, host["total_time_us"].fillna(0.0), len(below)),
            "self_us": np.bincount(merged, host["self_time_us"].fillna(0.0), len(below)),
        }
    )
    # A box is never wider than the one it stands on, so that one comes first: it has the smaller number.
    widest = np.lexsort((np.arange(len(below)), -totals["total_us"]))[:count]
    placed = placed_boxes(widest.tolist(), below.tolist(), totals["total_us"].tolist())
    boxes = totals.loc[list(placed)].assign(depth=[depth for depth, _ in placed.values()])
    boxes["left_us"] = [left_us for _, left_us in placed.values()]
    names = host[["op", "phase"]].iloc[boxes["row"].to_numpy()].reset_index(drop=True)
    return names.join(boxes[["calls", "depth", "left_us", "total_us", "self_us"]].reset_index(drop=True))


def _merged(host: pd.DataFrame) -> tuple[Ids, Ids]:
    """Returns the box of each row, and for each box the one that it stands on: a smaller number, -1 at the bottom."""
    thread = host["thread"].to_numpy()
    parent = pd.Index(host["op_id"]).get_indexer(host["parent_id"].to_numpy(np.int64, na_value=-1))
    # What another thread does meanwhile has its own boxes: beside its parent's own work it would not fit on it.
    parent = np.where((parent >= 0) & (thread[parent] == thread), parent, -1)
    return merged_calls(parent, _kinds(host))


def _kinds(host: pd.DataFrame) -> Ids:
    """Numbers the kind of each row: rows of one kind on the same box share a box.

    The level is in it: a range or an op may bear the name of a module's class.
    """
    kinds = np.zeros(len(host), np.int64)
    for name in ("op", "phase", "level"):
        codes, names = pd.factorize(host[name], use_na_sentinel=False)
        kinds = kinds * max(len(names), 1) + codes
    return kinds


def placed_boxes(widest: list[int], below: list[int], totals: list[float]) -> dict[int, tuple[int, float]]:
    """Returns the depth and left edge of each box, in order, without those that stand on a missing box."""
    placed: dict[int, tuple[int, float]] = {}
    free = {-1: 0.0}
    for box in widest:
        under = below[box]
        if under in free:
            depth = placed[under][0] + 1 if under >= 0 else 0
            placed[box] = depth, free[under]
            free[box] = free[under]
            free[under] += totals[box]
    return placed
