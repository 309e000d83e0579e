"""Takes nbkit's own work, whose spans of time are known, out of the events of a profiler."""

import numpy as np
import numpy.typing as npt

from nbkit.timeline import MEMORY, Events
from nbkit.timeline.events import ABSENT, Ints


def without_own_work(events: Events, spans: Ints) -> Events:
    """Returns the events as if nothing had been done in the spans: (spans, 2), in order, on the clock of start_ns.

    What begins or ends in a span does so where it begins; memory that was allocated in one, and its free, are left out.
    """
    if not len(spans):
        return events
    is_own = _is_own(events, spans)
    kept = events.at(np.flatnonzero(~is_own))
    if events.allocated_bytes is not None:
        kept.allocated_bytes = _allocated(events, is_own)[~is_own]
    ends = shifted(kept.start_ns + kept.duration_ns, spans)
    kept.start_ns = shifted(kept.start_ns, spans)
    kept.duration_ns = ends - kept.start_ns
    return kept


def shifted(times: Ints, spans: Ints) -> Ints:
    """Returns times on a clock that stands still in the spans."""
    if not len(spans):
        return times
    total = np.concatenate(([0], np.cumsum(spans[:, 1] - spans[:, 0])))
    begun = np.searchsorted(spans[:, 0], times, side="right")
    left = np.where(begun > 0, np.maximum(spans[begun - 1, 1] - times, 0), 0)  # of the span that a time lies in
    return np.asarray(times - total[begun] + left)


def _is_own(events: Events, spans: Ints) -> npt.NDArray[np.bool_]:
    """Returns which events are of memory that was allocated in one of the spans."""
    is_own = np.zeros(len(events), dtype=bool)
    rows = np.flatnonzero(events.kind == MEMORY)
    rows = rows[np.argsort(events.start_ns[rows], kind="stable")]
    begun = np.searchsorted(spans[:, 0], events.start_ns[rows], side="right")
    is_inside = (begun > 0) & (events.start_ns[rows] < spans[begun - 1, 1])
    devices, sizes, addresses = events.texts("device"), events.integers("size_bytes"), events.integers("address")
    held: set[tuple[str | None, int]] = set()
    for row, inside in zip(rows.tolist(), is_inside.tolist(), strict=True):
        place = devices[row], int(addresses[row])
        is_own[row] = inside if sizes[row] > 0 else place in held
        (held.add if is_own[row] and sizes[row] > 0 else held.discard)(place)
    return is_own


def _allocated(events: Events, is_own: npt.NDArray[np.bool_]) -> Ints:
    """Returns what the allocator of a device reports, less what is our own."""
    allocated = events.integers("allocated_bytes").copy()
    own_bytes = np.where(is_own, events.integers("size_bytes"), 0)
    devices = np.array(events.texts("device"), dtype=object)
    rows = np.flatnonzero((events.kind == MEMORY) & (allocated != ABSENT))
    rows = rows[np.argsort(events.start_ns[rows], kind="stable")]
    for device in set(devices[is_own].tolist()):
        mine = rows[devices[rows] == device]
        allocated[mine] -= np.cumsum(own_bytes[mine])
    return allocated
