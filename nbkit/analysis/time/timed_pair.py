"""Puts two timed traces side by side: times per repeat of any groups of their ops, and the noise of these."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from nbkit.analysis.time.noise import FEWEST_GROUPS, common_factor, noise_bounds, repeat_scales, typical
from nbkit.analysis.time.times import host_ops
from nbkit.schema import OPS, SAMPLES
from nbkit.trace.trace import Trace

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Clock = Literal["host", "device"]
OP_NAMES = ["model", "module", "phase", "level", "op"]
TIMES = {"host": "self_time_us", "device": "self_device_time_us"}
# A common factor further than this from 1 is worth a sentence.
NOTED_DRIFT = 0.02
# As is a share of a run that cannot tell how fast the machine was.
NOTED_CHANGE = 0.2
ENOUGH_REPEATS = 8
# A call that takes more than this many times its median over the repeats was interrupted.
INTERRUPTED = 3.0


@dataclass(frozen=True)
class RowTimes:
    """Holds the time of each host op of one trace in each of its repeats: one entry per op and repeat."""

    op_id: Ints
    repeat: Ints
    time_us: Floats
    repeats: int

    def per_group(self, group_of: Ints, count: int) -> Floats:
        """Sums times per group and repeat: (groups, repeats); `group_of` is that of each op_id, -1 for none."""
        # Ops of no group are summed in front and left out.
        place = (group_of[self.op_id] + 1) * self.repeats + self.repeat
        sums: Floats = np.bincount(place, self.time_us, (count + 1) * self.repeats).astype(np.float64)
        return sums.reshape(count + 1, self.repeats)[1:]


@dataclass(frozen=True)
class Groups:
    """Groups of ops of both traces: names, calls and time per repeat (a column each) per trace, and which are the same.

    `shown_us` is what the ops of a group take in each trace, as every view has it: of repeats the sum of medians.

    The same are those of which both traces call every op equally often: what differs then is the speed.
    """

    names: pd.DataFrame
    calls: tuple[Ints, Ints]
    times: tuple[Floats, Floats]
    is_same: Bools
    shown_us: tuple[Floats, Floats]


@dataclass(frozen=True)
class TimedPair:
    """Holds two timed traces: their times by row and by op, and what all ops of a repeat or of a run have in common.

    `factor` is how many times as long the right run takes for what both call equally often.
    """

    rows: tuple[RowTimes, RowTimes]
    by_op: Groups
    scales: tuple[Floats, Floats]
    factor: float

    @property
    def repeats(self) -> tuple[int, int]:
        return self.rows[0].repeats, self.rows[1].repeats

    def evened(self, times: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
        """Evens times (groups, repeats) of both for what a repeat or run has in common, on the right run's clock."""
        return times[0] / self.scales[0] * self.factor, times[1] / self.scales[1]

    def changes(
        self, times: tuple[Floats, Floats], is_match: Bools, is_same: Bools, whole_us: float | None = None
    ) -> tuple[Floats, Floats]:
        """Returns each group's change in us and the largest that noise explains, of times (groups, repeats) of both.

        The noise is null without repeats, and 0 where only one trace has the group. `whole_us` is the time of a step,
        the sum of the groups if they do not overlap.
        """
        left, right = self.evened(times)
        change = typical(right) - typical(left)
        noise = np.full(len(change), np.nan if min(self.repeats) < 2 else 0.0)
        noise[is_match] = noise_bounds(left[is_match], right[is_match], is_same[is_match], whole_us)
        return change, noise

    def notes(self) -> list[str]:
        """Returns sentences that a view of the difference should show."""
        return [*_repeats_notes(min(self.repeats)), *_machine_notes(self.by_op, self.factor)]


def timed_pair(left: Trace, right: Trace, clock: Clock = "host") -> TimedPair:
    """Returns the two traces' self times on the host's clock, or those of the kernels that their ops launched."""
    hosts = [host_ops(OPS.check(trace.frames.get("ops", OPS.frame()))) for trace in (left, right)]
    rows = _row_times(left, hosts[0], TIMES[clock]), _row_times(right, hosts[1], TIMES[clock])
    by_op = _op_groups(hosts, rows, TIMES[clock])
    scales = repeat_scales(by_op.times[0]), repeat_scales(by_op.times[1])
    even = [typical(times / scale)[by_op.is_same] for times, scale in zip(by_op.times, scales, strict=True)]
    return TimedPair(rows, by_op, scales, common_factor(even[0], even[1]))


def _row_times(trace: Trace, host: pd.DataFrame, column: str) -> RowTimes:
    """Returns times of the host's ops from the samples; without samples those of the run itself, as one repeat."""
    samples = SAMPLES.check(trace.frames.get("samples", SAMPLES.frame()))
    op_id: Ints = host["op_id"].to_numpy(np.int64)
    if not len(samples):
        single: Floats = host[column].fillna(0.0).to_numpy(np.float64)
        return RowTimes(op_id, np.zeros(len(op_id), np.int64), single, 1)
    if len(host) < len(trace.ops):
        samples = samples[samples["op_id"].isin(op_id)]
    repeat, repeats = pd.factorize(samples["repeat"])
    time = samples[column].fillna(0.0)
    usual = time.groupby(samples["op_id"], sort=False).transform("median")
    # An interruption adds whole time slices of the scheduler (4 ms on Linux), which say nothing about the call.
    time = time.clip(upper=INTERRUPTED * usual)
    return RowTimes(samples["op_id"].to_numpy(np.int64), repeat.astype(np.int64), time.to_numpy(), len(repeats))


def _op_groups(hosts: list[pd.DataFrame], rows: tuple[RowTimes, RowTimes], column: str) -> Groups:
    """Returns the groups of both traces by op."""
    keys = pd.concat([host[OP_NAMES] for host in hosts], ignore_index=True)
    codes: Ints = np.asarray(keys.groupby(OP_NAMES, dropna=False, sort=False).ngroup(), np.int64)
    first = np.unique(codes, return_index=True)[1]
    count, middle = len(first), len(hosts[0])
    calls, times, shown_us = [], [], []
    for host, own, row_times in zip(hosts, (codes[:middle], codes[middle:]), rows, strict=True):
        calls.append(np.bincount(own, minlength=count).astype(np.int64))
        shown_us.append(np.bincount(own, host[column].fillna(0.0), count).astype(np.float64))
        group_of = np.full(int(host["op_id"].max()) + 1 if len(host) else 0, -1, dtype=np.int64)
        group_of[host["op_id"].to_numpy()] = own
        times.append(row_times.per_group(group_of, count))
    names, is_same = keys.iloc[first].reset_index(drop=True), calls[0] == calls[1]
    return Groups(names, (calls[0], calls[1]), (times[0], times[1]), is_same, (shown_us[0], shown_us[1]))


def gathered(fine: Groups, names: list[str]) -> Groups:
    """Returns the groups summed to those of equal `names`."""
    codes: Ints = np.asarray(fine.names.groupby(names, dropna=False, sort=False).ngroup(), np.int64)
    first = np.unique(codes, return_index=True)[1]

    def summed(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        sums = np.zeros((len(first), *values.shape[1:]), values.dtype)
        np.add.at(sums, codes, values)
        return sums

    calls, times, shown_us = ([*map(summed, values)] for values in (fine.calls, fine.times, fine.shown_us))
    is_same: Bools = summed((~fine.is_same).astype(np.int64)) == 0
    known = fine.names.iloc[first][names].reset_index(drop=True)
    return Groups(known, (calls[0], calls[1]), (times[0], times[1]), is_same, (shown_us[0], shown_us[1]))


def _repeats_notes(repeats: int) -> Iterator[str]:
    if repeats < 2:
        yield (
            "The noise is unknown, so there are no verdicts: record both runs with repeats "
            "(nbkit.optime(warmup=2, repeats=10))."
        )
    elif repeats < ENOUGH_REPEATS:
        yield f"Only large changes are reliable with {repeats} repeats; use -r 10 (repeats=10)."


def _machine_notes(fine: Groups, factor: float) -> Iterator[str]:
    """Yields what is known of the speed of the machine in the two runs, where it matters."""
    if abs(factor - 1.0) > NOTED_DRIFT:
        yield (
            f"Overall speed differs by {factor:.2f}x (right run over left) on ops that both runs call equally often "
            f"(machine load, or a change of them all); verdicts are corrected for it."
        )
    typical_us = [typical(times) for times in fine.times]
    changed = max(1.0 - float(times[fine.is_same].sum()) / max(float(times.sum()), 1e-9) for times in typical_us)
    if changed > NOTED_CHANGE:
        known = "judged by the rest" if fine.is_same.sum() >= FEWEST_GROUPS else "not known"
        yield (
            f"{changed:.0%} of a run is in ops that the other run calls a different number of times, or not at all; "
            f"whether the machine was equally fast in both is {known}."
        )
