"""Packs times of ops as small numbers: what does not follow from their nesting."""

import numpy as np

from nbkit.analysis.query.encoded import Columns
from nbkit.views.panels.pack import EXACT, Column, Ints, numbers, scaled
from nbkit.views.panels.rounded import PER_US

TIMES = ("start_us", "total_time_us", "self_time_us")


def pack_times(ops: Columns) -> dict[str, Column]:
    """Returns the columns of `ops` that are times, by name.

    Where start, total and self time are known of every op they are `gap` (start after the end of the op before it
    inside the same parent, or after the start of the parent), self time, and `rest` (total time less self time and the
    total times of the children), nearly always 0.
    """
    known = {name: numbers(values, PER_US) for name, values in ops.numbers.items() if name.endswith("_us")}
    if not all((np.abs(ops.numbers[name]) * PER_US < EXACT / 1e3).all() for name in TIMES):
        return known
    start, total, own = (np.rint(ops.numbers[name] * PER_US).astype(np.int64) for name in TIMES)
    parent = ops.numbers["parent_id"]
    # A parent that comes later is not known yet when the page makes the times of the rows in order.
    holder = np.where(parent < np.arange(len(parent)), parent, -1).astype(np.int64)
    gap, rest = start - _expected(start, total, holder), total - own - _inside(ops, total, holder)
    small = {"gap": gap, "self_time_us": own, "rest": rest}
    packed = {name: scaled(values, PER_US) for name, values in small.items()}
    return {**{name: column for name, column in known.items() if name not in TIMES}, **packed}


def _expected(start: Ints, total: Ints, holder: Ints) -> Ints:
    """Returns when each op is due: at the end of the op before it in its parent, else at the parent's start, or 0."""
    order = np.argsort(holder, kind="stable")
    before = np.full(len(order), -1, np.int64)
    has_before = holder[order[1:]] == holder[order[:-1]]
    before[order[1:][has_before]] = order[:-1][has_before]
    ends, starts = np.append(start + total, 0), np.append(start, 0)
    due: Ints = np.where(before >= 0, ends[before], starts[holder])
    return due


def _inside(ops: Columns, total: Ints, holder: Ints) -> Ints:
    """Adds up the total times of the children; work on a device runs beside its parent."""
    level = ops.texts["level"]
    is_host = level.where((level.values != "kernel").to_numpy(bool), missing=True)
    inside = np.zeros(len(total), np.int64)
    rows = is_host & (holder >= 0)
    np.add.at(inside, holder[rows], total[rows])
    return inside
