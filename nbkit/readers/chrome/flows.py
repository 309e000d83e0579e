"""Matches arrows of a Chrome trace, from forward ops to the backward nodes that compute their gradients."""

from collections.abc import Hashable

import numpy as np

from nbkit.readers.chrome.ranks import Ranks
from nbkit.timeline.events import ABSENT, HOST, Events, Ints
from nbkit.timeline.names import BACKWARD_NODE

ThreadTime = tuple[int, int]  # thread and time in ns
Place = tuple[int, int, int]  # thread, time in ns, and how many rows came before


class Flows:
    """Holds both ends of each arrow, matched by its id; an end lies at the start of the event it belongs to."""

    def __init__(self) -> None:
        self._ends: dict[str, list[tuple[Hashable, Place]]] = {"s": [], "f": [], "t": []}
        self.loose = 0  # arrows that `forward()` found no op for at one of their ends

    def __len__(self) -> int:
        return sum(map(len, self._ends.values()))

    def add(self, phase: str, key: Hashable, place: Place) -> None:
        """Adds an arrow's tail (phase "s") or its head ("f")."""
        hash(key)
        self._ends[phase].append((key, place))

    def pairs(self, ranks: Ranks) -> list[tuple[ThreadTime, ThreadTime]]:
        """Returns tail and head of each arrow; those of ranks with the same ids apart."""
        tails = dict(_points(self._ends["s"], ranks))
        return [(tails[key], point) for key, point in _points(self._ends["f"], ranks) if key in tails]

    def forward(self, events: Events, ranks: Ranks) -> Ints | None:
        """Returns per backward node the index of its forward op, -1 elsewhere; None if the file has no arrows."""
        pairs = self.pairs(ranks)
        self.loose = max(len(self._ends["s"]), len(self._ends["f"]))
        if not pairs:
            return None
        forward, linked = forward_events(events, pairs)
        self.loose -= linked
        return forward

    def drain(self) -> list[tuple[str, Hashable, Place]]:
        """Returns phase, key and place of each end, and forgets them; points on the way tell nothing."""
        ends = [(phase, key, place) for phase in ("s", "f") for key, place in self._ends[phase]]
        self._ends = {phase: [] for phase in self._ends}
        return ends


def forward_events(events: Events, pairs: list[tuple[ThreadTime, ThreadTime]]) -> tuple[Ints, int]:
    """Returns per backward node the index of its forward op, -1 elsewhere, and how many arrows link two events."""
    ops = innermost_at(events, {tail for tail, _ in pairs})
    nodes = nodes_around(events, [head for _, head in pairs])
    forward, linked = np.full(len(events), ABSENT, dtype=np.int64), 0
    for (tail, _), node in zip(pairs, nodes, strict=True):
        if node >= 0 and tail in ops:
            forward[node] = ops[tail]
            linked += 1
    return forward, linked


def _points(ends: list[tuple[Hashable, Place]], ranks: Ranks) -> list[tuple[Hashable, ThreadTime]]:
    """Returns key and point of each end, with the rank of its process in both."""
    if not ends:
        return []
    thread, time, position = (
        np.array(values, dtype=np.int64) for values in zip(*(place for _, place in ends), strict=True)
    )
    moved = ranks.threads(thread, position)
    keys = zip((key for key, _ in ends), (moved - thread).tolist(), strict=True)
    return list(zip(keys, zip(moved.tolist(), time.tolist(), strict=True), strict=True))


def innermost_at(events: Events, points: set[ThreadTime]) -> dict[ThreadTime, int]:
    """Returns the host event that begins at each point: the shortest, if several do."""
    times = np.fromiter({time for _, time in points}, dtype=np.int64)
    rows = np.flatnonzero((events.kind == HOST) & np.isin(events.start_ns, times))
    rows = rows[np.argsort(-events.duration_ns[rows], kind="stable")]
    begun = zip(events.thread[rows].tolist(), events.start_ns[rows].tolist(), strict=True)
    return {point: row for point, row in zip(begun, rows.tolist(), strict=True) if point in points}


def nodes_around(events: Events, points: list[ThreadTime]) -> list[int]:
    """Returns the backward node around each point: torch draws arrows to the op in the node's range; -1 if none."""
    nodes = np.flatnonzero(events.named(lambda name: name.startswith(BACKWARD_NODE)))
    nodes = nodes[np.lexsort((-events.duration_ns[nodes], events.start_ns[nodes]))]
    by_thread = {int(thread): nodes[events.thread[nodes] == thread] for thread in np.unique(events.thread[nodes])}
    result = []
    for thread, time in points:
        rows = by_thread.get(thread)
        at = -1 if rows is None else int(np.searchsorted(events.start_ns[rows], time, side="right")) - 1
        row = int(rows[at]) if rows is not None and at >= 0 else ABSENT
        covers = row >= 0 and time <= int(events.start_ns[row] + events.duration_ns[row])
        result.append(row if covers else ABSENT)
    return result
