"""Puts several runs of one step together: the calls of one, with the median times that they have in all."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from nbkit.schema import SAMPLES, TIMINGS
from nbkit.timeline.median_times import at_median_times, moved
from nbkit.timeline.nesting import depth_levels

Frames = dict[str, pd.DataFrame]
TIMES = ("total_time_us", "self_time_us", "self_device_time_us")


def repeat_frames(runs: Sequence[tuple[Frames, float]]) -> tuple[int, Frames]:
    """Returns the index of the run of median wall time, and its frames.

    If there are several runs, the times of its ops are medians over those that have the op, and `samples` and `timings`
    are among the frames.
    """
    order = np.argsort([wall_us for _, wall_us in runs], kind="stable")
    shown = int(order[(len(runs) - 1) // 2])
    frames = runs[shown][0]
    if len(runs) < 2:
        return shown, frames
    samples = _samples([each for each, _ in runs], shown)
    medians = samples.groupby("op_id")[[*TIMES]].median()
    made = {**frames, "ops": at_median_times(frames["ops"], medians)}
    if "memory" in frames:
        time_us = moved(frames["memory"]["time_us"].to_numpy(np.float64), frames["ops"], made["ops"])
        made["memory"] = frames["memory"].assign(time_us=time_us)
    if "collectives" in frames:
        start_us = moved(frames["collectives"]["start_us"].to_numpy(np.float64), frames["ops"], made["ops"])
        made["collectives"] = frames["collectives"].assign(start_us=start_us)
    return shown, {**made, "samples": samples, "timings": timings(samples)}


def _samples(runs: Sequence[Frames], shown: int) -> pd.DataFrame:
    """Returns the times of the ops of one run in all runs; every run has those of its own."""
    keys = [op_keys(frames["ops"]) for frames in runs]
    parts = []
    for number, frames in enumerate(runs):
        match = pd.Index(keys[number]).get_indexer(pd.Index(keys[shown]))
        op_ids = np.flatnonzero(match >= 0)
        rows = frames["ops"].iloc[match[op_ids]]
        times = {name: rows[name].to_numpy() for name in TIMES}
        parts.append(pd.DataFrame({"op_id": op_ids, "repeat": number, **times}))
    joined = pd.concat(parts, ignore_index=True)
    return SAMPLES.frame({name: joined[name].to_numpy() for name in SAMPLES.names})


def op_keys(ops: pd.DataFrame) -> np.ndarray:
    """Returns per op a number that is the same for the same op of another run: from its names and rank among its like.

    Two ops are the same if they and all they are nested in have the same names and stand at the same count among
    siblings of that name.
    """
    parent = ops["parent_id"].to_numpy(np.int64, na_value=-1)
    names = pd.util.hash_array(ops["op"].to_numpy(object), categorize=True).astype(np.uint64)
    nth = ops.groupby([parent, names]).cumcount().to_numpy().astype(np.uint64)
    own = pd.util.hash_array(names ^ (nth * np.uint64(0x9E3779B97F4A7C15)))
    key = own.copy()
    for rows in depth_levels(parent)[1:]:
        key[rows] = pd.util.hash_array(key[parent[rows]] * np.uint64(31) + own[rows])
    return key


def timings(samples: pd.DataFrame) -> pd.DataFrame:
    """Gives median, IQR and minimum of the total time of each op over its repeats."""
    groups = samples.groupby("op_id")["total_time_us"]
    lower, upper = groups.quantile(0.25), groups.quantile(0.75)
    return TIMINGS.frame(
        {
            "op_id": lower.index.to_numpy(),
            "repeats": groups.size().to_numpy(),
            "median_us": groups.median().to_numpy(),
            "iqr_us": (upper - lower).to_numpy(),
            "min_us": groups.min().to_numpy(),
        }
    )
