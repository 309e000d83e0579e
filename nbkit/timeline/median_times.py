"""Lays a run of a step out anew with the median times of its calls over several runs.

Medians do not add up: what hits another call in each run, as other processes do, is in the median of the whole step and
in no call's. A timeline has to: so each call keeps the median of its self time, and its total time is what is inside.
"""

import numpy as np
import numpy.typing as npt
import pandas as pd

from nbkit.timeline.nesting import depth_levels, subtree_sums

Flags = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
MAIN = 0
# Less than the clock tells apart.
CLOCK_US = 1e-3
# What of a step may be in no call's median before that is said.
MOST_DELAYS = 0.05


def at_median_times(ops: pd.DataFrame, medians: pd.DataFrame, between: Floats | None = None) -> pd.DataFrame:
    """Returns `ops` in their order and nesting, with the times of `medians`: a row per op with columns as in `ops`.

    Calls begin in the order of the run that `ops` is of. Gaps between calls are their caller's self time, and
    shrink or grow with it; one before a call at the top, as its factor in `between` says. Work on a device begins
    no earlier than its launch, and after what its stream does before.
    """
    nest = _Nest(ops)
    own, own_device, whole = (
        medians[name].to_numpy(np.float64) for name in ("self_time_us", "self_device_time_us", "total_time_us")
    )
    own = np.where(nest.is_kernel, whole, own)
    total = _totals(nest, own)
    device = subtree_sums(nest.parent, nest.levels, np.where(nest.is_kernel, 0.0, np.nan_to_num(own_device)))
    known = ops["total_device_time_us"].notna().to_numpy(bool)
    return ops.assign(
        start_us=_starts(nest, own, total, between),
        total_time_us=total,
        self_time_us=own,
        total_device_time_us=np.where(known, np.where(nest.is_kernel, total, device), np.nan),
        self_device_time_us=own_device,
    )


def moved(time_us: Floats, before: pd.DataFrame, after: pd.DataFrame) -> Floats:
    """Returns where moments of one layout of ops lie in another of the same, by the calls of the main thread."""
    nests = _Nest(before), _Nest(after)
    old, new = (np.concatenate([nest.begin[nest.is_main], nest.end[nest.is_main]]) for nest in nests)
    return _moments(time_us, old, new)


class _Nest:
    """Holds the nesting and the times of one layout of ops as arrays."""

    def __init__(self, ops: pd.DataFrame) -> None:
        self.parent: Ints = ops["parent_id"].to_numpy(np.int64, na_value=-1)
        self.levels = depth_levels(self.parent)
        self.begin, self.total, self.own = (
            ops[name].to_numpy(np.float64) for name in ("start_us", "total_time_us", "self_time_us")
        )
        self.end = self.begin + self.total
        self.is_kernel: Flags = (ops["level"] == "kernel").to_numpy(bool)
        thread = ops["thread"].to_numpy(np.int64)
        self.is_main: Flags = (thread == MAIN) & ~self.is_kernel
        self.is_called: Flags = (self.parent >= 0) & ~self.is_kernel
        self.is_nested: Flags = self.is_called & (thread == thread[self.parent])
        # What runs one after the other: a thread's calls, a stream's kernels.
        streams = ops.groupby(["device", "stream"], dropna=False, sort=False).ngroup().to_numpy()
        self.lane: Ints = np.where(self.is_kernel, thread.max(initial=0) + 1 + streams, thread)


def _totals(nest: _Nest, own: Floats) -> Floats:
    """Returns what each call takes with all it calls, but for kernels; what threads did at once counts once."""
    children = _inside(nest, nest.total, nest.is_called)
    at_once = np.where(nest.is_kernel, 0.0, nest.total - nest.own - children)
    at_once[np.abs(at_once) < CLOCK_US] = 0.0
    inside, nested, total = np.zeros(len(own)), np.zeros(len(own)), own.copy()
    for level in reversed(nest.levels):
        total[level] += np.maximum(inside[level] + at_once[level], nested[level])
        for sums, counts in ((inside, nest.is_called), (nested, nest.is_nested)):
            rows = level[counts[level]]
            np.add.at(sums, nest.parent[rows], total[rows])
    return total


def _inside(nest: _Nest, values: Floats, counts: Flags) -> Floats:
    sums = np.zeros(len(values))
    np.add.at(sums, nest.parent[counts], values[counts])
    return sums


def gaps_us(ops: pd.DataFrame) -> Floats:
    """Returns the time before each call at the top of the main thread in which no call ran; 0 for all others."""
    nest = _Nest(ops)
    tops = np.flatnonzero(nest.is_main & ~nest.is_nested)
    tops = tops[np.argsort(nest.begin[tops], kind="stable")]
    gaps = np.zeros(len(ops))
    gaps[tops] = np.maximum(nest.begin[tops] - np.append(0.0, nest.end[tops])[:-1], 0.0)
    return gaps


def _starts(nest: _Nest, own: Floats, total: Floats, between: Floats | None) -> Floats:
    """Returns when each call begins: those of the main thread first, which tell where all others lie."""
    offset = _offsets(nest, own, total, between)
    start = np.zeros(len(own) + 1)  # the last one is where the parent of calls at the top begins
    within = np.where(nest.is_nested, nest.parent, -1)

    def place(chosen: Flags) -> None:
        for level in nest.levels:
            rows = level[chosen[level]]
            start[rows] = start[within[rows]] + offset[rows]

    place(nest.is_main)
    begin = start[:-1][nest.is_main]
    old = np.concatenate([nest.begin[nest.is_main], nest.end[nest.is_main]])
    new = np.concatenate([begin, begin + total[nest.is_main]])
    tops = ~nest.is_main & ~nest.is_nested
    for rows in (np.flatnonzero(tops & ~nest.is_kernel), np.flatnonzero(nest.is_kernel)):
        due = np.maximum(_moments(nest.begin[rows], old, new), start[nest.parent[rows]])
        start[rows] = _queued(nest, rows, due, total[rows])
        place(~nest.is_main & nest.is_nested)
    return start[:-1]


def _offsets(nest: _Nest, own: Floats, total: Floats, between: Floats | None) -> Floats:
    """Returns how long after its caller each call begins; at the top, after the recording."""
    known = nest.own > 0
    ratio = np.append(np.where(known, own / np.where(known, nest.own, 1.0), 1.0), 1.0)
    holder = np.where(nest.is_nested, nest.parent, -1)
    key = np.where(holder >= 0, holder, -1 - nest.lane)
    order = np.argsort(key, kind="stable")
    is_first = np.append(True, key[order[1:]] != key[order[:-1]])
    callers = np.append(nest.begin, 0.0)[holder[order]]
    gap = nest.begin[order] - np.where(is_first, callers, np.append(0.0, nest.end[order[:-1]]))
    factor = ratio[holder[order]]
    if between is not None:
        factor = np.where(holder[order] < 0, between[order], factor)
    gap = np.where(gap > 0, gap * factor, gap)
    ends = np.cumsum(gap + total[order])
    before = np.append(0.0, ends[:-1])[np.maximum.accumulate(np.where(is_first, np.arange(len(order)), 0))]
    offset = np.empty(len(order))
    offset[order] = ends - total[order] - before
    return offset


def _moments(time_us: Floats, old: Floats, new: Floats) -> Floats:
    """Returns the moments that lie between `new` as these do between `old`; beyond all as far from the last one."""
    if not len(old):
        return time_us
    order = np.lexsort((new, old))
    old, new = old[order], np.maximum.accumulate(new[order])
    moments: Floats = np.interp(time_us, old, new) + np.maximum(time_us - old[-1], 0) + np.minimum(time_us - old[0], 0)
    return moments


def _queued(nest: _Nest, rows: Ints, due: Floats, total: Floats) -> Floats:
    """Returns when calls begin that are due then, and wait for those before them on their lane as they did before."""
    start = due.copy()
    for lane in np.unique(nest.lane[rows]):
        at = np.flatnonzero(nest.lane[rows] == lane)
        begin, end = nest.begin[rows[at]], nest.end[rows[at]]
        length = total[at] - np.append(np.maximum(end[:-1] - begin[1:], 0.0), 0.0)
        ends = np.cumsum(length)
        start[at] = np.maximum.accumulate(due[at] - (ends - length)) + (ends - length)
    return start
