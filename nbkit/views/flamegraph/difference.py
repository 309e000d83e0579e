"""Makes the state of a difference of two flame graphs: the change and the noise of repeats of each frame."""

import numpy as np

from nbkit.analysis.structure.module_repeats import folded_path
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
    """Returns the traits of a flame graph: flame, base and difference; without a base trace the last two are null.

    With a base the repeats are those that both have: layers that are alike in one of them only are compared one by one.
    """
    now = flame_state(trace)
    if base is None:
        return {"flame": now, "base": None, "difference": None}
    before = flame_state(base)
    now["repeats"] = before["repeats"] = _shared_repeats(now["repeats"], before["repeats"])
    return {"flame": now, "base": before, "difference": difference_state(trace, base, now, before)}


def difference_state(trace: Trace, base: Trace, now: State, before: State) -> State:
    """Returns the state of the difference of two traces, whose own states are `now` and `before`.

    repeats of both, base first; notes; single_factor and single_share, from which on single recordings are colored;
    and views: for 'none host', 'module host' ... and with repeated layers as one, 'none host folded' ..., count and
    columns (bytes) of the frames that both have and that are not too small to be judged. A frame is given by a `row` of
    now and how many frames it lies above that row's (`up`); `usual`, `change` and `noise` are those of `compare_trees`
    in us, and `own` is 1 where they are the frame's own. Without repeats there are no views.
    """
    repeats = [_repeats(base), _repeats(trace)]
    views: dict[str, State] = {}
    notes: list[str] = []
    if min(repeats) > 1 and now["count"] and before["count"]:
        pairs = {clock: timed_pair(base, trace, clock) for clock in clocks(now, before)}
        sides = {"": (now, before)}
        if now["repeats"]:
            sides[" folded"] = folded(now), folded(before)
        trees = {(group, fold): flame_tree(*sides[fold], group) for fold in sides for group in GROUPS}
        for (group, fold), tree in trees.items():
            views |= {f"{group} {clock}{fold}": _view(tree, pair) for clock, pair in pairs.items()}
        notes = pairs["host"].notes()
    return {
        "repeats": repeats,
        "notes": notes,
        "single_factor": SINGLE_FACTOR,
        "single_share": SINGLE_SHARE,
        "views": views,
    }


def folded(state: State) -> State:
    """Returns the state with the paths of repeated modules replaced by the one they share, as repeats.js does."""
    repeats = {("", path): name for path, name in state["repeats"].items()}
    paths = [folded_path("", path, repeats) for path in state["strings"]["module"]]
    return {**state, "strings": {**state["strings"], "module": paths}}


def _shared_repeats(now: dict[str, str], before: dict[str, str]) -> dict[str, str]:
    """Returns the repeats whose name stands for the same modules on both sides."""
    kept, known = (_alike(repeats) for repeats in (now, before))
    return {path: key[1] for key, paths in kept.items() if known.get(key) == paths for path in sorted(paths)}


def _alike(repeats: dict[str, str]) -> dict[tuple[str, str], set[str]]:
    """Returns the paths of each set of modules that are alike, by the path above them and the name they share."""
    alike: dict[tuple[str, str], set[str]] = {}
    for path, name in repeats.items():
        alike.setdefault((path.rpartition(".")[0], name), set()).add(path)
    return alike


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
