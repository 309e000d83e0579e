"""Makes the state of a difference of two flame graphs: the change and the noise of repeats of each frame."""

import numpy as np

from nbkit.analysis.time.compare_trees import compare_trees
from nbkit.analysis.time.timed_pair import Clock, TimedPair, timed_pair
from nbkit.schema import SAMPLES
from nbkit.trace.trace import Trace
from nbkit.views.flamegraph.data import State, column, flame_state
from nbkit.views.flamegraph.trees import GROUPS, FlameTree, flame_tree, host_rows

# What is colored where single recordings are compared: in half of all pairs of equal steps of a LLaMA no more than one
# of some 1,400 frames differs by as much (bench/views/flame_difference.py), which nobody can tell from a change.
SINGLE_FACTOR = 2.0
SINGLE_SHARE = 0.005
# Noise is known to be that many times the time itself, or more.
MOST_NOISE = 10.0
# Times of a verdict are kept to the tenth of a microsecond.
PER_US = 10
TYPES = {"row": "<i4", "up": "<i4", "own": "<i4", "usual": "<f8", "change": "<f8", "noise": "<f8"}


def flame_states(trace: Trace, base: Trace | None) -> dict[str, State | None]:
    """Returns the traits of a flame graph: flame, base and difference; without a base trace the last two are null."""
    now = flame_state(trace)
    if base is None:
        return {"flame": now, "base": None, "difference": None}
    before = flame_state(base)
    return {"flame": now, "base": before, "difference": difference_state(trace, base, now, before)}


def difference_state(trace: Trace, base: Trace, now: State, before: State) -> State:
    """Returns the state of the difference of two traces, whose own states are `now` and `before`.

    repeats of both, base first; notes; single_factor and single_share, from which on single recordings are colored;
    and views: for 'none host', 'module host' ... count and columns (bytes) of the frames that both have and that are
    not too small to be judged. A frame is given by a `row` of now and how many frames it lies above that row's (`up`);
    `usual`, `change` and `noise` are those of `compare_trees` in us, and `own` is 1 where they are the frame's own.
    Without repeats there are no views.
    """
    repeats = [_repeats(base), _repeats(trace)]
    views, notes = {}, []
    if min(repeats) > 1 and now["count"] and before["count"]:
        pairs = {clock: timed_pair(base, trace, clock) for clock in clocks(now, before)}
        trees = {group: flame_tree(now, before, group) for group in GROUPS}
        views = {f"{group} {clock}": _view(trees[group], pair) for group in GROUPS for clock, pair in pairs.items()}
        notes = pairs["host"].notes()
    return {
        "repeats": repeats,
        "notes": notes,
        "single_factor": SINGLE_FACTOR,
        "single_share": SINGLE_SHARE,
        "views": views,
    }


def clocks(now: State, before: State) -> list[Clock]:
    """Returns the clocks that the ops of both hosts have times of."""
    return ["host", "device"] if all(_launched(state) for state in (now, before)) else ["host"]


def _launched(state: State) -> bool:
    """Tells whether any op of the host knows the time of the kernels it launched."""
    return bool((column(state, "device_self")[host_rows(state)] > 0).any())


def _repeats(trace: Trace) -> int:
    samples = SAMPLES.check(trace.frames.get("samples", SAMPLES.frame()))
    return max(samples["repeat"].nunique(), 1)


def _view(tree: FlameTree, pair: TimedPair) -> State:
    judged = compare_trees(pair, (tree.frame_of[1], tree.frame_of[0]), tree.parent)
    judged = judged[~judged["is_small"]]
    frames = judged["frame"].to_numpy()
    row, up = tree.rows_within()
    times = {name: np.rint(judged[f"{name}_us"].to_numpy() * PER_US) / PER_US for name in ("usual", "change", "noise")}
    # Finite, and not below the change: the verdict stays.
    most = np.maximum(np.abs(times["change"]), MOST_NOISE * np.maximum(times["usual"], 1.0))
    columns = {"row": row[frames], "up": up[frames], "own": judged["is_own"].to_numpy(), **times}
    columns["noise"] = np.minimum(times["noise"], most)
    packed = {name: np.asarray(columns[name]).astype(kind).tobytes() for name, kind in TYPES.items()}
    return {"count": len(frames), "columns": packed}
