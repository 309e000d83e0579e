"""The difference of two timings by the frames of a tree, such as a flamegraph's: each with all that is inside it."""

import numpy as np
import numpy.typing as npt
import pandas as pd

from nbkit.analysis.noise import SMALL, typical
from nbkit.analysis.timed_pair import Bools, Floats, Ints, TimedPair
from nbkit.schema import Column, Table
from nbkit.timeline.nesting import with_inside

FRAME_DIFFS = Table(
    "frame_diffs",
    "frame that both traces have",
    tuple(
        Column(*column)
        for column in (
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
    ),
)


def compare_trees(pair: TimedPair, frame_of: tuple[Ints, Ints], parent: Ints) -> pd.DataFrame:
    """A frame of FRAME_DIFFS. `frame_of` is the frame of each op_id of both traces, -1 for none.

    `parent` is that of each frame, -1 at the top, and has a smaller number than the frame. Frames are judged by their
    total time, as nbkit.analysis.noise does it for groups: of equal pairs of runs, one in 200 has a frame whose change
    is beyond noise. The total of what holds much else is noisy, so each frame's own time is judged in the same way, and
    stands in its row if it alone is beyond.
    """
    own = _sums(pair, frame_of, len(parent))
    whole = tuple(with_inside(times, parent) for times in own)
    calls = [_calls(frames, len(parent)) for frames in frame_of]
    differing = with_inside((calls[0] != calls[1]).astype(np.int64), parent)
    is_own, is_whole = (np.minimum(*each) > 0 for each in (calls, [with_inside(each, parent) for each in calls]))
    step_us = float(np.maximum(*(typical(times) for times in pair.evened(own))).sum())
    totals = _judged(pair, (whole[0], whole[1]), is_whole, differing == 0, step_us)
    selves = _judged(pair, own, is_own, calls[0] == calls[1], step_us)
    takes_own = ~_is_beyond(totals) & _is_beyond(selves) & is_own
    frames = np.flatnonzero(is_whole)
    columns = [np.where(takes_own, own_value, value)[frames] for own_value, value in zip(selves, totals, strict=True)]
    usual, change, noise = columns
    is_small = np.maximum(usual, usual + change) < SMALL * step_us
    flags = {"is_own": takes_own[frames], "is_small": is_small}
    return FRAME_DIFFS.frame({"frame": frames, "usual_us": usual, "change_us": change, "noise_us": noise, **flags})


def _sums(pair: TimedPair, frame_of: tuple[Ints, Ints], count: int) -> tuple[Floats, Floats]:
    left, right = (rows.per_group(frames, count) for rows, frames in zip(pair.rows, frame_of, strict=True))
    return left, right


def _calls(frames: Ints, count: int) -> Ints:
    return np.bincount(frames[frames >= 0], minlength=count).astype(np.int64)


def _judged(
    pair: TimedPair, times: tuple[Floats, Floats], is_match: Bools, is_same: Bools, step_us: float
) -> tuple[Floats, Floats, Floats]:
    """Usual time, change and noise of each frame."""
    change, noise = pair.changes(times, is_match, is_same, step_us)
    return typical(pair.evened(times)[0]), change, noise


def _is_beyond(judged: tuple[Floats, Floats, Floats]) -> npt.NDArray[np.bool_]:
    _, change, noise = judged
    return np.abs(change) > noise  # False where the noise is null
