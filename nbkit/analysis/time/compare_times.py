"""Compares two timings by op or module: what is slower or faster by more than the noise of the repeats."""

from collections.abc import Sequence
from typing import Literal

import numpy as np
import pandas as pd

from nbkit.analysis.time.timed_pair import OP_NAMES, TIMES, Groups, TimedPair, gathered, timed_pair
from nbkit.errors import OptionError, nearest
from nbkit.progress import Progress
from nbkit.schema import TEXT, table
from nbkit.trace.checks import checked_trace
from nbkit.trace.trace import Trace

NAMES = {"op": OP_NAMES, "module": OP_NAMES[:3]}

TIME_DIFFS = table(
    "time_diffs",
    "group of ops of two traces: the same module, phase and, by op, level and op",
    ("model", "str", "root model; null outside any"),
    ("module", "str", "module path, without what is below it; null outside any"),
    ("phase", "str", "forward, backward, optimizer or other"),
    ("level", "str", "as in ops; null where all levels of a module are counted together"),
    ("op", "str", "as in ops; null where all ops of a module are counted together"),
    ("action", "str", "match, left_only or right_only"),
    ("left_calls", "int64", "calls in the left trace"),
    ("right_calls", "int64", "calls in the right trace"),
    ("left_us", "float64", "self time in the left trace, as in its ops: of repeats the sum of the calls' medians"),
    ("right_us", "float64", "the same in the right trace"),
    ("difference_us", "float64", "right_us less left_us"),
    ("ratio", "float64", "right_us over left_us; null where left_us is 0"),
    (
        "drift_us",
        "float64",
        "difference_us less change_us: what the common factors of runs and repeats, and disturbed ones, explain",
    ),
    ("change_us", "float64", "what is particular to this group, between the lower quartiles of the repeats"),
    ("noise_us", "float64", "largest change_us, up or down, that noise can explain; null if not known"),
    ("verdict", "str", "slower or faster: beyond noise; within_noise; null where the noise is not known"),
)


def compare_times(
    left: Trace,
    right: Trace,
    *,
    by: Literal["module", "op"] = "module",
    clock: Literal["host", "device"] = "host",
) -> pd.DataFrame:
    """Returns a frame of TIME_DIFFS: what differs beyond noise, largest change first; then what comes nearest to it.

    `by="module"`: per module (not counting what is below it) and phase; `by="op"`: per op in it too. Python's own time
    counts, as self time of the levels module, range and api. `clock="device"` compares the time of kernels.

    Times and noise come from the `samples` of both traces; see nbkit.analysis.noise. Calls that were interrupted count
    INTERRUPTED times their median. A group that only one trace has differs by all of its time, whatever the noise.
    Where a trace has fewer than 2 repeats, noise_us and verdict are null.
    `attrs` of the frame: common_factor (how many times as long the right run takes for what both call equally often),
    left_repeats, right_repeats, and notes, sentences that a view should show. Raises OptionError.
    """
    for name, value, known in (("by", by, NAMES), ("clock", clock, TIMES)):
        if not isinstance(value, str) or value not in known:
            raise OptionError(f"{name}={value!r} is not a way to compare times; {nearest(str(value), known)}")
    with Progress(lambda: f"compare_times: {len(left.ops):,} and {len(right.ops):,} ops"):
        pair = timed_pair(checked_trace(left, "left"), checked_trace(right, "right"), clock)
        table = _table(pair.by_op if by == "op" else gathered(pair.by_op, NAMES[by]), pair)
    repeats = {"left_repeats": pair.repeats[0], "right_repeats": pair.repeats[1]}
    table.attrs.update({"common_factor": pair.factor, **repeats, "notes": pair.notes()})
    return table


def _table(groups: Groups, pair: TimedPair) -> pd.DataFrame:
    """Returns the frame of TIME_DIFFS."""
    left_us, right_us = groups.shown_us
    is_match = (groups.calls[0] > 0) & (groups.calls[1] > 0)
    change, noise = pair.changes(groups.times, is_match, groups.is_same)
    is_beyond = np.abs(change) > noise  # False where the noise is null
    verdict = pd.Series(np.select([~is_beyond, change > 0], ["within_noise", "slower"], "faster"), dtype=TEXT)
    action = np.select([groups.calls[1] == 0, groups.calls[0] == 0], ["left_only", "right_only"], "match")
    # A change of a steady group says more than a larger one of a group that scatters as widely.
    is_known = ~is_beyond & (noise > 0)
    size = np.abs(change) / np.where(is_known, noise, 1.0)
    order = np.lexsort((-size, ~is_beyond))
    columns = {
        **{str(name): groups.names[name].array for name in groups.names},
        "action": action.astype(object),
        "left_calls": groups.calls[0],
        "right_calls": groups.calls[1],
        "left_us": left_us,
        "right_us": right_us,
        "difference_us": right_us - left_us,
        "ratio": right_us / np.where(left_us > 0, left_us, np.nan),
        "drift_us": right_us - left_us - change,
        "change_us": change,
        "noise_us": noise,
        "verdict": verdict.where(~np.isnan(noise)).to_numpy(dtype=object),
    }
    return TIME_DIFFS.frame({name: values[order] for name, values in columns.items()})


def compare_counts(left: pd.DataFrame, right: pd.DataFrame, keys: Sequence[str]) -> pd.DataFrame:
    """Returns `keys` with left_count and right_count, a row per combination that the frames have unequally often.

    The largest difference stands first; ties keep the order of the frames, the left one first. Null equals null.
    """
    both = pd.concat([left[list(keys)], right[list(keys)]], ignore_index=True)
    codes = both.groupby(list(keys), dropna=False, sort=False).ngroup().to_numpy()
    first = np.unique(codes, return_index=True)[1]
    counts = [np.bincount(part, minlength=len(first)) for part in np.split(codes, [len(left)])]
    counted = both.iloc[first].reset_index(drop=True).assign(left_count=counts[0], right_count=counts[1])
    size = (counted["left_count"] - counted["right_count"]).abs()
    differs = counted[size > 0]
    return differs.loc[size[size > 0].sort_values(ascending=False, kind="stable").index].reset_index(drop=True)
