"""Compares two timings by the frames of a tree, such as a flame graph's: each with all that is inside it."""

import numpy as np
import numpy.typing as npt
import pandas as pd

from nbkit.analysis.time.noise import SMALL, typical
from nbkit.analysis.time.timed_pair import Bools, Floats, Ints, TimedPair
from nbkit.schema import table
from nbkit.timeline.nesting import depth_levels, subtree_sums

FRAME_DIFFS = table(
    "frame_diffs",
    "frame that both traces have",
    ("frame", "int64", "number of the frame"),
    (
        "usual_us",
        "float64",
        "time in the left trace, the lower quartile of its repeats, on the right run's clock",
    ),
    ("change_us", "float64", "the same of the right trace, less usual_us"),
    ("noise_us", "float64", "largest change_us, up or down, that noise can explain; null if not known"),
    (
        "is_own",
        "bool",
        "whether the times are the frame's own, without what is inside: where that alone changed beyond noise",
    ),
    (
        "is_small",
        "bool",
        "whether it takes too little of the step in both runs to be judged: it is within noise",
    ),
)


def compare_trees(pair: TimedPair, frame_of: tuple[Ints, Ints], parent: Ints) -> pd.DataFrame:
    """Returns a frame of FRAME_DIFFS. `frame_of` is the frame of each op_id of both traces, -1 for none.

    `parent` is that of each frame, -1 at the top, and has a smaller number than the frame. Frames are judged by their
    total time, as nbkit.analysis.noise does it for groups. The total of what holds much else is noisy, so each frame's
    own time is judged in the same way, and stands in its row if it alone is beyond: of equal pairs of runs, one in 100
    has a frame whose change is called more than noise.
    """
    levels = depth_levels(parent)
    left, right = (rows.per_group(frames, len(parent)) for rows, frames in zip(pair.rows, frame_of, strict=True))
    calls = [_calls(frames, len(parent)) for frames in frame_of]
    both, differing = np.minimum(*calls) > 0, np.abs(calls[0] - calls[1])
    wholes = [subtree_sums(parent, levels, values) for values in (left, right, *calls, differing)]
    is_whole = np.minimum(wholes[2], wholes[3]) > 0
    step_us = float(np.maximum(*(typical(times) for times in pair.evened((left, right)))).sum())
    total = _judged(pair, (wholes[0], wholes[1]), is_whole, wholes[4] == 0, step_us)
    own = _judged(pair, (left, right), both, differing == 0, step_us)
    takes_own = both & _is_beyond(own) & ~_is_beyond(total)
    usual, change, noise = (np.where(takes_own, *each)[is_whole] for each in zip(own, total, strict=True))
    flags = {"is_own": takes_own[is_whole], "is_small": np.maximum(usual, usual + change) < SMALL * step_us}
    times = {"usual_us": usual, "change_us": change, "noise_us": noise}
    return FRAME_DIFFS.frame({"frame": np.flatnonzero(is_whole), **times, **flags})


def _calls(frames: Ints, count: int) -> Ints:
    return np.bincount(frames[frames >= 0], minlength=count).astype(np.int64)


def _judged(
    pair: TimedPair, times: tuple[Floats, Floats], is_match: Bools, is_same: Bools, step_us: float
) -> tuple[Floats, Floats, Floats]:
    """Returns usual time, change and noise of each frame."""
    change, noise = pair.changes(times, is_match, is_same, step_us)
    return typical(pair.evened(times)[0]), change, noise


def _is_beyond(judged: tuple[Floats, Floats, Floats]) -> npt.NDArray[np.bool_]:
    _, change, noise = judged
    return np.abs(change) > noise  # False where the noise is null
