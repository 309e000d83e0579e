"""Tells what is odd about the events of a file as a whole: times of no clock, kernels that overlap on a stream."""

import numpy as np

from nbkit import units
from nbkit.timeline.events import KERNEL, Events, Ints

# What begins in the first day of one clock and what begins later than the third is on clocks of two kinds.
DAY_NS = 86_400 * 10**9
# Kernels of one stream may overlap by the little that the next one starts early.
MOST_OVERLAP = 1.1


def on_one_clock(events: Events) -> tuple[Events, int]:
    """Returns the events of the clock that most are of, and how many are not, where some count from days before."""
    fewer = min(np.abs(events.start_ns) < DAY_NS, events.start_ns > 3 * DAY_NS, key=np.sum)
    count = int(fewer.sum())
    return (events.at(np.flatnonzero(~fewer)), count) if count else (events, 0)


def overlaps(events: Events) -> list[str]:
    """Returns a note for each stream on which kernels take more time than passes."""
    work = np.flatnonzero((events.kind == KERNEL) & (events.duration_ns > 0))
    notes = []
    for thread in np.unique(events.thread[work]).tolist():
        rows = work[events.thread[work] == thread]
        taken, passed = int(events.duration_ns[rows].sum()), _covered(events.start_ns[rows], events.duration_ns[rows])
        if taken > MOST_OVERLAP * passed:
            stream = int(events.integers("stream")[rows[0]])
            where = f"stream {stream}" if stream >= 0 else "one stream"
            times = f"{units.duration(taken / 1e3)} of device time within {units.duration(passed / 1e3)} on {where}"
            notes.append(f"Kernels overlap: {times}; their ends may have been recorded late.")
    return notes


def _covered(start: Ints, duration: Ints) -> int:
    """Returns how much time lies in at least one of the intervals."""
    order = np.argsort(start, kind="stable")
    start, end = start[order], (start + duration)[order]
    before = np.append(start[0], np.maximum.accumulate(end)[:-1])
    return int(np.maximum(end - np.maximum(start, before), 0).sum())
