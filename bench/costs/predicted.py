"""Compares the time that opcost predicts of a step, and of each of its ops, with what is measured."""

import gc
from dataclasses import dataclass
from time import perf_counter, process_time

import numpy as np
import pandas as pd

import nbkit
from bench.costs.steps import Step
from bench.harness.ratios import markdown
from nbkit.devices.device import Device

HEAD = (
    "model", "predicted ms", "measured ms", "error", "wall ms", "ops", "found in optime", "rank correlation of ops",
    "of those that are no views",
)  # fmt: skip
# Autograd adds to a gradient in place unless a mode sees the step, as in opcost.
SAME = {"aten.add_": "aten.add"}


@dataclass(frozen=True)
class Prediction:
    """Holds predicted and measured milliseconds of a step, and how its ops rank by both."""

    model: str
    predicted_ms: float
    measured_ms: float
    wall_ms: float
    ops: int
    found: int
    rank_correlation: float
    rank_without_views: float

    @property
    def error(self) -> float:
        return self.predicted_ms / self.measured_ms - 1


def compared(model: str, step: Step, device: Device | str, rounds: int) -> Prediction:
    """Returns prediction and measurement of a step: the least time of `rounds`, of the process's CPU and of the wall.

    An op's time is the least in `rounds` recordings of optime, with all that runs inside it.
    """
    for _ in range(2):
        step()
    spans = [_timed(step) for _ in range(rounds)]
    recordings = [_recorded(step) for _ in range(rounds)]
    costs = nbkit.opcost(device=device).run(step).costs
    pairs = matched(costs, recordings)
    moving = pairs[pairs["read_bytes"] + pairs["written_bytes"] > 0]
    return Prediction(
        model,
        costs["time_us"].sum() / 1e3,
        min(cpu for cpu, _ in spans) * 1e3,
        min(wall for _, wall in spans) * 1e3,
        len(costs),
        len(pairs),
        spearman(pairs["time_us"], pairs["measured_us"]),
        spearman(moving["time_us"], moving["measured_us"]),
    )


def _timed(step: Step) -> tuple[float, float]:
    gc.collect()
    cpu, wall = process_time(), perf_counter()
    step()
    return process_time() - cpu, perf_counter() - wall


def _recorded(step: Step) -> pd.DataFrame:
    with nbkit.optime() as trace:
        step()
    return trace.ops


def matched(costs: pd.DataFrame, recordings: list[pd.DataFrame]) -> pd.DataFrame:
    """Returns the rows of `costs` that recordings of optime have, with `measured_us`: the least time of each.

    The profiler also has ops that run inside others; those are left out. What is left is paired by phase and name in
    its order, where both have as many calls.
    """
    keys = ["phase", "name", "number"]
    ours = costs.assign(name=_names(costs["op"]))
    ours["number"] = ours.groupby(keys[:2]).cumcount()
    times = [_outermost(ops, set(ours["name"])).set_index(keys)["total_time_us"] for ops in recordings]
    least = pd.concat(times, axis=1).min(axis=1).rename("measured_us")
    counts = least.groupby(level=keys[:2]).size()
    is_same = ours.groupby(keys[:2])["number"].transform("size") == counts.reindex(
        pd.MultiIndex.from_frame(ours[keys[:2]])
    ).to_numpy(np.float64)
    return ours[is_same].merge(least.reset_index(), on=keys)


def _outermost(ops: pd.DataFrame, names: set[str]) -> pd.DataFrame:
    """Returns the rows of optime with these names that no other of them holds."""
    rows = ops.assign(name=_names(ops["op"]))
    is_one = ((rows["level"] == "aten") & rows["name"].isin(names)).to_numpy()
    parents = rows["parent_id"].fillna(-1).to_numpy(np.int64)
    is_inside = np.zeros(len(rows), bool)
    for place, parent in enumerate(parents):
        is_inside[place] = parent >= 0 and (is_inside[parent] or is_one[parent])
    found = rows[is_one & ~is_inside].copy()
    found["number"] = found.groupby(["phase", "name"]).cumcount()
    return found


def _names(ops: pd.Series) -> pd.Series:
    return ops.str.split(".").str[:2].str.join(".").replace(SAME)


def spearman(left: pd.Series, right: pd.Series) -> float:
    """Returns Spearman's rank correlation; equal values share their mean rank."""
    return float(left.rank().corr(right.rank()))


def table(predictions: list[Prediction]) -> str:
    """Returns a Markdown table with a row per model."""
    rows = [
        (
            each.model,
            f"{each.predicted_ms:,.0f}",
            f"{each.measured_ms:,.0f}",
            f"{each.error:+.1%}",
            f"{each.wall_ms:,.0f}",
            f"{each.ops:,}",
            f"{each.found:,}",
            f"{each.rank_correlation:.3f}",
            f"{each.rank_without_views:.3f}",
        )
        for each in predictions
    ]
    return markdown(HEAD, rows)
