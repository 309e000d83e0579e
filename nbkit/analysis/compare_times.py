"""The difference of two timings by op or module: what got slower or faster by more than the noise of the repeats."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from nbkit.analysis.noise import FEWEST_GROUPS, common_factor, noise_bounds, repeat_scales, typical
from nbkit.analysis.times import host_ops
from nbkit.errors import OptionError, nearest
from nbkit.schema import OPS, SAMPLES, Column, Table
from nbkit.trace import Trace

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
OP_NAMES = ["model", "module", "phase", "level", "op"]
NAMES = {"op": OP_NAMES, "module": OP_NAMES[:3]}
# A common factor further than this from 1 is worth a sentence.
NOTED_DRIFT = 0.02
# As is a share of a run that cannot tell how fast the machine was.
NOTED_CHANGE = 0.2
ENOUGH_REPEATS = 8
# A call that takes more than this many times its median over the repeats was interrupted.
INTERRUPTED = 3.0
TIMES = {"host": "self_time_us", "device": "self_device_time_us"}

TIME_DIFFS = Table(
    "time_diffs",
    "group of ops of two traces: the same module, phase and, by op, level and op",
    tuple(
        Column(*column)
        for column in (
            ("model", "str", "root model; null outside any"),
            ("module", "str", "module path, without what is below it; null outside any"),
            ("phase", "str", "forward, backward, optimizer or other"),
            ("level", "str", "as in ops; null where all levels of a module are counted together"),
            ("op", "str", "as in ops; null where all ops of a module are counted together"),
            ("action", "str", "match, left_only or right_only"),
            ("left_calls", "int64", "calls in the left trace"),
            ("right_calls", "int64", "calls in the right trace"),
            ("left_us", "float64", "self time in the left trace: the lower quartile of its repeats"),
            ("right_us", "float64", "self time in the right trace: the lower quartile of its repeats"),
            ("difference_us", "float64", "right_us less left_us"),
            ("ratio", "float64", "right_us over left_us; null where left_us is 0"),
            ("drift_us", "float64", "what of the difference the common factors of the runs and their repeats explain"),
            ("change_us", "float64", "difference_us less drift_us: what is particular to this group"),
            ("noise_us", "float64", "largest change_us, up or down, that noise can explain; null if not known"),
            ("verdict", "str", "slower or faster: beyond noise; within_noise; null where the noise is not known"),
        )
    ),
)


@dataclass(frozen=True)
class _Groups:
    """Groups of both traces: names, calls and time per repeat (a column each) per trace, and whether they are the same.

    The same are those of which both traces call every op equally often: what differs then is the speed.
    """

    names: pd.DataFrame
    calls: tuple[Ints, Ints]
    times: tuple[Floats, Floats]
    is_same: Bools


def compare_times(
    left: Trace,
    right: Trace,
    *,
    by: Literal["module", "op"] = "module",
    clock: Literal["host", "device"] = "host",
) -> pd.DataFrame:
    """A frame of TIME_DIFFS: what differs beyond noise first; among these, and among the rest, largest change first.

    `by="module"`: per module (not counting what is below it) and phase; `by="op"`: per op in it too. Python's own time
    counts, as self time of the levels module, range and api. `clock="device"` compares the time of kernels.

    Times and noise come from the `samples` of both traces; see nbkit.analysis.noise. Calls that were interrupted count
    INTERRUPTED times their median. A group that only one trace has differs by all of its time, whatever the noise.
    Where a trace has fewer than 2 repeats, noise_us and verdict are null.
    `attrs` of the frame: common_factor (how many times as long the right run takes for what both call equally often),
    left_repeats, right_repeats, and notes, sentences that a view should show. Raises OptionError.
    """
    for name, value, known in (("by", by, NAMES), ("clock", clock, TIMES)):
        if value not in known:
            raise OptionError(f"{name}={value!r} is not a way to compare times; {nearest(value, known)}")
    fine = _op_groups(left, right, TIMES[clock])
    groups = fine if by == "op" else _gathered(fine, NAMES[by])
    scales = [repeat_scales(times) for times in fine.times]
    even_left, even_right = (times / scale for times, scale in zip(groups.times, scales, strict=True))
    evened = [typical(times / scale)[fine.is_same] for times, scale in zip(fine.times, scales, strict=True)]
    factor = common_factor(evened[0], evened[1])
    table = _table(groups, factor, even_left * factor, even_right)
    table.attrs.update(_attributes(fine, factor))
    return table


def _op_groups(left: Trace, right: Trace, column: str) -> _Groups:
    """The groups of both traces by op."""
    hosts = [host_ops(OPS.check(trace.frames.get("ops", OPS.frame()))) for trace in (left, right)]
    keys = pd.concat([host[OP_NAMES] for host in hosts], ignore_index=True)
    codes: Ints = np.asarray(keys.groupby(OP_NAMES, dropna=False, sort=False).ngroup(), np.int64)
    first = np.unique(codes, return_index=True)[1]
    count, middle = len(first), len(hosts[0])
    calls, times = [], []
    for trace, host, own in zip((left, right), hosts, (codes[:middle], codes[middle:]), strict=True):
        calls.append(np.bincount(own, minlength=count).astype(np.int64))
        times.append(_times_per_repeat(trace, host, own, count, column))
    names, is_same = keys.iloc[first].reset_index(drop=True), calls[0] == calls[1]
    return _Groups(names, (calls[0], calls[1]), (times[0], times[1]), is_same)


def _times_per_repeat(trace: Trace, host: pd.DataFrame, codes: Ints, count: int, column: str) -> Floats:
    """Time of each group in each repeat: (groups, repeats); one column if the trace has no repeats."""
    samples = SAMPLES.check(trace.frames.get("samples", SAMPLES.frame()))
    if not len(samples):
        single: Floats = np.bincount(codes, host[column].fillna(0.0), minlength=count).astype(np.float64)
        return single[:, None]
    code_of = np.full(len(trace.ops), count, dtype=np.int64)  # the last group takes the kernels
    code_of[host["op_id"].to_numpy()] = codes
    repeat, repeats = pd.factorize(samples["repeat"])
    place = code_of[samples["op_id"].to_numpy()] * len(repeats) + repeat
    time = samples[column].fillna(0.0)
    usual = time.groupby(samples["op_id"], sort=False).transform("median")
    # An interruption adds whole time slices of the scheduler (4 ms on Linux), which say nothing about the call.
    time = time.clip(upper=INTERRUPTED * usual)
    sums: Floats = np.bincount(place, time, (count + 1) * len(repeats)).astype(np.float64)
    return sums.reshape(count + 1, len(repeats))[:count]


def _gathered(fine: _Groups, names: list[str]) -> _Groups:
    """The groups summed to those of equal `names`."""
    codes: Ints = np.asarray(fine.names.groupby(names, dropna=False, sort=False).ngroup(), np.int64)
    first = np.unique(codes, return_index=True)[1]

    def summed(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        sums = np.zeros((len(first), *values.shape[1:]), values.dtype)
        np.add.at(sums, codes, values)
        return sums

    calls, times = [summed(values) for values in fine.calls], [summed(values) for values in fine.times]
    is_same: Bools = summed((~fine.is_same).astype(np.int64)) == 0
    return _Groups(
        fine.names.iloc[first][names].reset_index(drop=True), (calls[0], calls[1]), (times[0], times[1]), is_same
    )


def _table(groups: _Groups, factor: float, even_left: Floats, even_right: Floats) -> pd.DataFrame:
    """The frame of TIME_DIFFS; `even_...` are the times without what a whole repeat or run has in common."""
    left_us, right_us = (typical(times) for times in groups.times)
    change = typical(even_right) - typical(even_left)
    is_match = (groups.calls[0] > 0) & (groups.calls[1] > 0)
    noise = np.full(len(change), np.nan if min(left.shape[1] for left in groups.times) < 2 else 0.0)
    noise[is_match] = noise_bounds(even_left[is_match], even_right[is_match], groups.is_same[is_match])
    is_beyond = np.abs(change) > noise  # False where the noise is null
    verdict = pd.Series(np.select([~is_beyond, change > 0], ["within_noise", "slower"], "faster"), dtype="str")
    action = np.select([groups.calls[1] == 0, groups.calls[0] == 0], ["left_only", "right_only"], "match")
    order = np.lexsort((-np.abs(change), ~is_beyond))
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


def _attributes(fine: _Groups, factor: float) -> dict[str, Any]:
    left, right = (times.shape[1] for times in fine.times)
    notes = [*_repeats_notes(min(left, right)), *_machine_notes(fine, factor)]
    return {"common_factor": factor, "left_repeats": left, "right_repeats": right, "notes": notes}


def _repeats_notes(repeats: int) -> Iterator[str]:
    if repeats < 2:
        yield (
            "The noise is not known, so no difference is called one: record both runs with repeats "
            "(nbkit.optime(warmup=2, repeats=10))."
        )
    elif repeats < ENOUGH_REPEATS:
        yield f"{repeats} repeats tell only large differences from noise, and not always; record both runs with 10."


def _machine_notes(fine: _Groups, factor: float) -> Iterator[str]:
    """What is known of the speed of the machine in the two runs, where it matters."""
    if abs(factor - 1.0) > NOTED_DRIFT:
        reason = "slower or busier" if factor > 1.0 else "faster or less busy"
        yield (
            f"The right run takes {factor:.2f} times as long for the ops that both runs call equally often. "
            f"A {reason} machine does that, or a change of them all; the verdicts are on what is left without it."
        )
    typical_us = [typical(times) for times in fine.times]
    changed = max(1.0 - float(times[fine.is_same].sum()) / max(float(times.sum()), 1e-9) for times in typical_us)
    if changed > NOTED_CHANGE:
        known = "judged by the rest" if fine.is_same.sum() >= FEWEST_GROUPS else "not known"
        yield (
            f"{changed:.0%} of a run is in ops that the other one calls more or less often, or not at all; "
            f"whether the machine was as fast in both is {known}."
        )
