"""Works out from a trace of opcost what checkpointing each of its modules would free, when, and at what price."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from nbkit.capture.cost.what_if.checkpointing import holders
from nbkit.capture.cost.what_if.difference import events_of_fullest_device
from nbkit.trace.trace import Trace


@dataclass(frozen=True)
class Pass:
    """Describes one forward pass of a module: checkpointing frees so many bytes after op `end`, before op `again`."""

    end: int
    again: int
    freed_bytes: int


@dataclass(frozen=True)
class Candidate:
    """Describes a module path that may be checkpointed, with FLOPs and bytes moved of what would run again."""

    path: str
    flops: int
    moved_bytes: int
    passes: tuple[Pass, ...]


@dataclass(frozen=True)
class Timeline:
    """Holds the memory of a step between the ops where a candidate's pass ends or runs again.

    `held_bytes` (R,) is the most in each such region, `freed_bytes` (R, N) what each candidate frees there.
    """

    held_bytes: np.ndarray
    freed_bytes: np.ndarray

    def peak_bytes(self, chosen: np.ndarray) -> int:
        """Returns the peak if the chosen candidates (N,) are checkpointed; the real one is seldom lower."""
        return int((self.held_bytes - self.freed_bytes @ chosen).max(initial=0))


def candidates(trace: Trace, may: Callable[[str], bool]) -> list[Candidate]:
    """Returns the modules with a path that may be chosen, whose checkpointing would free memory, as they first run."""
    costs = trace.costs[trace.costs["module"].notna()]
    paths = dict.fromkeys(path for own in costs["module"].unique() for path in (*holders(own), own))
    saved = _Saved(trace)
    backward = costs.loc[costs["phase"] == "backward", "op_id"].to_numpy()
    found = []
    for path in filter(may, paths):
        inside = costs[_is_in(costs["module"], path)]
        if (candidate := _candidate(path, inside, saved, backward)) is not None:
            found.append(candidate)
    return found


def _is_in(modules: pd.Series, path: str) -> np.ndarray:
    if not path:
        return modules.notna().to_numpy(bool)
    return ((modules == path) | modules.str.startswith(f"{path}.")).fillna(False).to_numpy(bool)


class _Saved:
    """Holds the saved tensors of a trace."""

    def __init__(self, trace: Trace) -> None:
        rows = trace.saved[trace.saved["saver_op_id"].notna()]
        self.modules = rows["saver_module"]
        self.savers = rows["saver_op_id"].to_numpy(np.int64)
        self.producers = rows["producer_op_id"].fillna(-1).to_numpy(np.int64)
        self.allocations = rows["allocation_id"].to_numpy(np.int64)
        self.sizes = rows["storage_bytes"].to_numpy(np.int64)


def _candidate(path: str, inside: pd.DataFrame, saved: _Saved, backward: np.ndarray) -> Candidate | None:
    is_backward = (inside["phase"] == "backward").to_numpy(bool)
    forward, own_backward = inside[~is_backward], inside.loc[is_backward, "op_id"].to_numpy()
    is_own = _is_in(saved.modules, path)
    flops = moved = 0
    passes = []
    # A pass ends where a backward pass begins: a step that sums gradients up has several.
    for _, ops in forward.groupby(np.searchsorted(backward, forward["op_id"].to_numpy())):
        ids = ops["op_id"].to_numpy()
        again = own_backward[own_backward > ids[-1]]
        rows = is_own & (saved.savers >= ids[0]) & (saved.savers <= ids[-1])
        if not len(again) or not rows.any():
            continue
        # Storages that anything else saves, or that came from outside, stay.
        elsewhere = saved.allocations[~rows]
        is_freed = rows & np.isin(saved.producers, ids) & ~np.isin(saved.allocations, elsewhere)
        _, first = np.unique(saved.allocations[is_freed], return_index=True)
        passes.append(Pass(int(ids[-1]), int(again[0]), int(saved.sizes[is_freed][first].sum())))
        # What runs again stops once the last saved tensor is there: an op that saves inputs alone does not run.
        last = saved.savers[rows].max()
        runs_last = (saved.producers[rows & (saved.savers == last)] == last).any()
        reruns = ops[(ids < last) | ((ids == last) & runs_last)]
        flops += int(reruns["flops"].fillna(0).sum())
        moved += int(reruns["read_bytes"].sum() + reruns["written_bytes"].sum())
    if not any(each.freed_bytes for each in passes):
        return None
    return Candidate(path, flops, moved, tuple(passes))


def timeline(trace: Trace, found: list[Candidate]) -> Timeline:
    """Returns the memory of a step, and what each candidate frees of it."""
    events = events_of_fullest_device(trace)
    ops = events["op_id"].fillna(-1).to_numpy(np.int64)
    held = events["allocated_bytes"].to_numpy(np.int64)
    bounds = np.unique([edge for each in found for one in each.passes for edge in (one.end + 1, one.again)])
    region = np.searchsorted(bounds, ops, side="right")
    most = pd.Series(held).groupby(region).max()
    freed = np.zeros((len(most), len(found)), np.int64)
    starts = np.concatenate([[-1], bounds])[most.index.to_numpy()]
    for number, each in enumerate(found):
        for one in each.passes:
            freed[(starts > one.end) & (starts < one.again), number] += one.freed_bytes
    return Timeline(most.to_numpy(), freed)
