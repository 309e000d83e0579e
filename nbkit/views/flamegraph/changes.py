"""Says how each frame changed between two flame graphs of merged calls, as the widget does, for static views."""

import numpy as np
import numpy.typing as npt
import pandas as pd

from nbkit import units
from nbkit.timeline.nesting import depth_levels, subtree_sums
from nbkit.views.flamegraph.data import State, column
from nbkit.views.flamegraph.difference import MOST_NOISE, TYPES
from nbkit.views.flamegraph.trees import FlameTree, flame_tree

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
KINDS = ("same", "slower", "faster", "added", "removed")
SINGLE = "one run each: noise unknown"
ONE_SIDE = "noise unknown: repeats of one side only"


def flame_changes(now: State, base: State, difference: State) -> pd.DataFrame:
    """Returns a frame with one row per frame of either flame graph, parents first.

    text, parent, calls; width_us, its total time now, of what was removed that before; kind, one of KINDS; usual_us,
    change_us, noise_us and is_own as in `compare_trees`, without repeats from the totals, with no noise.
    """
    tree = flame_tree(now, base, "none")
    calls, selves = (
        [weighed(state, rows, len(tree.parent)) for state, rows in zip((now, base), tree.frame_of, strict=True)]
        for weighed in (_calls, _selves)
    )
    levels = depth_levels(tree.parent)
    total, before = (subtree_sums(tree.parent, levels, times) for times in selves)
    width = subtree_sums(tree.parent, levels, np.where(calls[0] > 0, selves[0], selves[1]))
    judged = _judged(tree, difference) if difference["views"] else _unjudged(total, before)
    change = judged["change_us"].to_numpy()
    is_beyond = np.abs(change) > judged["noise_us"] if difference["views"] else _is_coloured(total, before, difference)
    kinds = [(calls[0] == 0), (calls[1] == 0), ~is_beyond, change > 0]
    return judged.assign(
        text=tree.texts,
        parent=tree.parent,
        calls=np.where(calls[0] > 0, calls[0], calls[1]),
        width_us=width,
        kind=np.select(kinds, ["removed", "added", "same", "slower"], "faster"),
    )


def _calls(state: State, frame_of: Ints, count: int) -> Ints:
    return np.bincount(frame_of[frame_of >= 0], minlength=count).astype(np.int64)


def _selves(state: State, frame_of: Ints, count: int) -> Floats:
    is_in = frame_of >= 0
    own = np.maximum(column(state, "self")[is_in], 0.0)
    return np.bincount(frame_of[is_in], own, count).astype(np.float64)


def _judged(tree: FlameTree, difference: State) -> pd.DataFrame:
    """Returns usual_us, change_us, noise_us and is_own by frame; null where it is too short to be judged."""
    packed = difference["views"]["none host"]["columns"]
    columns = {name: np.frombuffer(packed[name], kind) for name, kind in TYPES.items()}
    frames = pd.DataFrame(np.nan, range(len(tree.parent)), ["usual_us", "change_us", "noise_us"]).assign(is_own=False)
    # Frames of merged calls have rows of their own: none is given by one above that of its row.
    rows = tree.frame_of[0][columns["row"]]
    for name in ("usual", "change", "noise"):
        frames.loc[rows, f"{name}_us"] = columns[name]
    frames.loc[rows, "is_own"] = columns["own"] == 1
    return frames


def _unjudged(total: Floats, before: Floats) -> pd.DataFrame:
    return pd.DataFrame({"usual_us": before, "change_us": total - before, "noise_us": np.nan, "is_own": False})


def _is_coloured(total: Floats, before: Floats, difference: State) -> npt.NDArray[np.bool_]:
    """Tells which frames of single recordings differ by more than equal recordings hardly ever do."""
    small = difference["single_share"] * float(total.max(initial=0.0))
    is_apart = np.maximum(total, before) >= difference["single_factor"] * np.minimum(total, before)
    return np.asarray(is_apart & (np.abs(total - before) > small))


def change_words(kind: str, usual: float, change: float, noise: float, *, is_own: bool, is_judged: bool) -> str:
    """Words a change: 'slower: +1.20 ms (+18.0 %), beyond noise ±3.0 %', in the words of verdicts.js."""
    if kind in ("added", "removed"):
        return kind
    whose = f"{'self time ' if is_own else ''}{'' if kind == 'same' else f'{kind}: '}"
    relative = f"{'−' if change < 0 else '+'}{units.share(abs(change) / usual)}" if usual > 0 else ""
    figures = units.change(change) + (f" ({relative})" if relative else "")
    if not is_judged:
        return f"{whose}{figures}, noise unknown"
    if np.isnan(noise):
        return "too short to be judged"
    around = f"±{units.duration(noise)}" if usual <= 0 else f"±{units.share(noise / usual)}"
    if 0 < MOST_NOISE * usual <= noise:
        around = f"over ±{100 * MOST_NOISE:.0f} %"
    if kind == "same":
        return f"within noise ({relative or units.change(change)}, noise {around})"
    return f"{whose}{figures}, beyond noise {around}"


def change_mark(kind: str, usual: float, change: float, *, is_own: bool) -> str:
    """Marks a change: '▲ +18 %', in the words of describe.js; empty for what is the same."""
    if kind in ("added", "removed", "same"):
        return "" if kind == "same" else kind
    percent = f" {'−' if change < 0 else '+'}{units.fixed(100 * abs(change) / usual, 0)} %" if usual > 0 else ""
    return f"{'▼' if kind == 'faster' else '▲'}{' self' if is_own else ''}{percent}"


def noise_note(difference: State) -> str:
    """Says what the colors of a difference stand for, in the words of views.js."""
    before, now = difference["repeats"]
    if difference["views"]:
        return f"slower, faster: beyond the noise of {now} repeats, {before} before"
    unknown = SINGLE if max(before, now) < 2 else ONE_SIDE
    factor, share = difference["single_factor"], units.share(difference["single_share"])
    return (
        f"{unknown}; colored: at least {factor:g} times as long or as short, by {share} of all time · "
        f"record both with repeats (-r 10)"
    )
