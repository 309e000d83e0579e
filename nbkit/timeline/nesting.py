"""Nests intervals: which event lies inside which, and what that makes of their times."""

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]


def call_order(start: Ints, duration: Ints) -> Ints:
    """Returns indices in order of start; of those that start together the longer first, so that parents come first."""
    return np.lexsort((-duration, start)).astype(np.int64)


def parents(thread: Ints, start: Ints, end: Ints) -> Ints:
    """Returns per event the index of the innermost event of its thread that covers it; -1 at the top.

    The events are in call order. One that ends after the event it began in is not nested in it.
    """
    parent = np.full(len(start), -1, dtype=np.int64)
    order = np.argsort(thread, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(thread[order])) + 1):
        within = np.array(_parents_of_one(start[rows].tolist(), end[rows].tolist()), dtype=np.int64)
        inside = within >= 0
        parent[rows[inside]] = rows[within[inside]]
    return parent


def _parents_of_one(starts: list[int], ends: list[int]) -> list[int]:
    """Returns the same of the events of one thread."""
    parent = []
    stack: list[int] = []
    for row, (began, ended) in enumerate(zip(starts, ends, strict=True)):
        while stack and ends[stack[-1]] <= began:
            stack.pop()
        at = len(stack) - 1
        while at >= 0 and ends[stack[at]] < ended:
            at -= 1
        parent.append(stack[at] if at >= 0 else -1)
        stack.append(row)
    return parent


def depth_levels(parent: Ints) -> list[Ints]:
    """Returns indices of the events level by level from the top; every parent has a smaller index than its children."""
    depth = depths(parent)
    order = np.argsort(depth, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(depth[order])) + 1) if len(order) else []


def depths(parent: Ints) -> Ints:
    """Returns how many events each event is nested in."""
    depth = np.zeros(len(parent), dtype=np.int64)
    rows = np.flatnonzero(parent >= 0)
    above = parent[rows]
    while len(rows):
        depth[rows] += 1
        above = parent[above]
        rows, above = rows[above >= 0], above[above >= 0]
    return depth


def inherited(parent: Ints, levels: list[Ints], own: npt.NDArray[np.bool_]) -> Ints:
    """Returns per event the nearest event of its ancestors and itself that is marked in `own`; -1 if there is none."""
    anchor: Ints = np.where(own, np.arange(len(parent)), -1)
    for rows in levels[1:]:
        anchor[rows] = np.where(own[rows], rows, anchor[parent[rows]])
    return anchor


def self_times(parent: Ints, duration: Ints, more: Ints | int = 0) -> Ints:
    """Returns each duration less that of the direct children, plus `more`; never negative."""
    inside = np.zeros(len(parent), dtype=np.int64)
    rows = parent >= 0
    np.add.at(inside, parent[rows], duration[rows])
    left: Ints = np.maximum(duration - inside + more, 0)
    return left


def overlaps(parent: Ints, thread: Ints, start: Ints, end: Ints) -> Ints:
    """Returns what to add to each event's self time where events overlap without one lying in the other.

    Time in two of them is of the one that began last: the other, or the last call open in it, has it no more; and the
    event around both, which loses the duration of each, loses that time once. Siblings that overlap end in order.
    """
    more = np.zeros(len(parent), dtype=np.int64)
    by_parent = np.lexsort((thread, parent))
    before, after = by_parent[:-1], by_parent[1:]
    meet = (parent[before] == parent[after]) & (thread[before] == thread[after]) & (end[before] > start[after])
    above = parent[by_parent]
    for first, second in zip(before[meet].tolist(), after[meet].tolist(), strict=True):
        if parent[first] >= 0:
            more[parent[first]] += end[first] - start[second]
        inner = _last_open(by_parent, above, first, second, start, end)
        while inner >= 0:
            more[first] -= end[first] - end[inner]
            first, inner = inner, _last_open(by_parent, above, inner, second, start, end)
        more[first] -= end[first] - start[second]
    return more


def _last_open(by_parent: Ints, above: Ints, row: int, later: int, start: Ints, end: Ints) -> int:
    """Returns the child of an event that is still open when a later event begins; -1 if there is none."""
    children = by_parent[slice(*np.searchsorted(above, [row, row + 1]))]
    is_open = (start[children] <= start[later]) & (end[children] > start[later])
    return int(children[is_open][-1]) if is_open.any() else -1


def subtree_sums(parent: Ints, levels: list[Ints], value: npt.NDArray[np.float64] | Ints) -> npt.NDArray[np.float64]:
    """Returns the sum of `value` over each event and all below it."""
    total = value.astype(np.float64)
    for rows in reversed(levels[1:]):
        np.add.at(total, parent[rows], total[rows])
    return total
