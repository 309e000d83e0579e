"""Finds the collectives, sends and receives among ops: one call each, whatever names it has on its way to a backend."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from nbkit.ops.collectives import P2P, called_collective, dispatched_collective, run_collective_name
from nbkit.timeline.events import ABSENT, Ints

Floats = np.ndarray
# What a backend without a name of its own runs for another: gloo reduces, then keeps its share.
STANDS_FOR = {"reduce_scatter": "all_reduce"}
DEVICE_WORK = ("nccl", "rccl", "hccl", "xccl")
WAIT = "_c10d_functional.wait_tensor"


@dataclass
class Calls:
    """Holds the calls by the op_id of their dispatcher call, `row`, and of their outermost op, `top`."""

    row: Ints
    top: Ints
    kind: list[str]
    start_us: Floats  # of the dispatcher's call
    end_us: Floats

    def may_run(self, at: int, run: str) -> bool:
        """Returns whether a backend runs what is named so, "gloo:all_reduce", for the call of this number."""
        kind, ran = self.kind[at], run_collective_name(run)
        return ran in (None, kind, STANDS_FOR.get(kind)) or kind == "barrier"

    def around(self, time_us: float, run: str) -> int:
        """Returns the number of the call in which a moment lies, the last begun that may run this; -1 if none does."""
        last = int(np.searchsorted(self.start_us, time_us, side="right"))
        inside = np.flatnonzero(self.end_us[:last] >= time_us).tolist()
        return next((at for at in reversed(inside) if self.may_run(at, run)), ABSENT)

    def of_runs(self, times_us: Sequence[float], runs: Sequence[str]) -> list[int]:
        """Returns for each thing that a backend ran, in order of time, the number of the call for it; -1 for none.

        Times tell. Where they do not find a call for each, as two clocks were compared badly, the order does, if there
        are as many calls of fitting names.
        """
        found = [self.around(time_us, run) for time_us, run in zip(times_us, runs, strict=True)]
        if ABSENT not in found and len(set(found)) == len(found):
            return found
        mine = [at for at, kind in enumerate(self.kind) if kind not in P2P]
        fits = len(mine) == len(runs) and all(map(self.may_run, mine, runs))
        return mine if fits else found


def collective_calls(ops: pd.DataFrame) -> Calls:
    """Returns the calls among ops, in order of time."""
    parent = ops["parent_id"].to_numpy(np.int64, na_value=-1)
    dispatched, called = _rows(ops, dispatched_collective), _rows(ops, called_collective)
    is_known = set(dispatched) | set(called)
    has_inner, tops = set(), {}
    for row in dispatched:
        top = row
        while int(parent[top]) in is_known:
            top = int(parent[top])
            has_inner.add(top)
        tops[row] = top
    rows = np.array([row for row in dispatched if row not in has_inner], dtype=np.int64)
    start = ops["start_us"].to_numpy(np.float64)
    rows = rows[np.argsort(start[rows], kind="stable")]
    end = start[rows] + ops["total_time_us"].to_numpy(np.float64)[rows]
    kinds = [dispatched[row] for row in rows.tolist()]
    return Calls(rows, np.array([tops[row] for row in rows.tolist()], dtype=np.int64), kinds, start[rows], end)


def _rows(ops: pd.DataFrame, kind_of: Callable[[str], str | None]) -> dict[int, str]:
    """Returns the rows of ops that have a kind, in order, with that."""
    codes, different = pd.factorize(ops["op"])
    kinds = [kind_of(str(name)) for name in different]
    is_one = np.array([kind is not None for kind in kinds], dtype=bool)
    return {row: str(kinds[codes[row]]) for row in np.flatnonzero(is_one[codes]).tolist()} if kinds else {}


def transfers(ops: pd.DataFrame, calls: Calls, runs: Sequence[str | None], groups: Sequence[object]) -> Ints:
    """Returns for each call the op_id of what its backend ran for it, on a thread of its own or a device; -1 unknown.

    `runs` are the names of these where they are known, `groups` tell process groups apart. Work of a device hangs under
    its call. What a thread ran comes after its call, in the order of the calls of that name in a group: where some of
    that name are missing, or those of another group may have come first, it is not known which is whose.
    """
    found = np.full(len(calls.row), ABSENT, dtype=np.int64)
    _device_work(ops, calls, found)
    ran = _rows(ops, run_collective_name)
    start = ops["start_us"].to_numpy(np.float64)
    by_kind: dict[str, list[int]] = {}
    for row, kind in ran.items():
        by_kind.setdefault(kind, []).append(row)
    wanted = [run_collective_name(run) if run else None for run in runs]
    run_as = [kind if kind in by_kind else STANDS_FOR.get(kind, kind) for kind in calls.kind]
    kinds = [known or other for known, other in zip(wanted, run_as, strict=True)]
    for kind, rows in by_kind.items():
        rows.sort(key=lambda row: float(start[row]))
        mine = [number for number, each in enumerate(kinds) if each == kind and found[number] < 0]
        if len(rows) == len(mine) and (start[rows] >= calls.start_us[mine]).all():
            is_sure = [True] * len(mine)
            for at, (row, call, after) in enumerate(zip(rows, mine, mine[1:], strict=False)):
                if groups[call] != groups[after] and start[row] >= calls.start_us[after]:
                    is_sure[at] = is_sure[at + 1] = False
            found[mine] = np.where(is_sure, rows, ABSENT)
    return found


def _device_work(ops: pd.DataFrame, calls: Calls, found: Ints) -> None:
    """Fills in the kernels of collectives that hang under a call."""
    parent = ops["parent_id"].to_numpy(np.int64, na_value=-1)
    number = {int(row): at for at, row in enumerate(calls.row)}
    is_work = ops["level"].eq("kernel") & ops["op"].str.lower().str.startswith(DEVICE_WORK)
    for row in np.flatnonzero(is_work.to_numpy(bool)).tolist():
        above = int(parent[row])
        while above >= 0 and above not in number:
            above = int(parent[above])
        if above >= 0 and found[number[above]] < 0:
            found[number[above]] = row


def functional_waits(ops: pd.DataFrame, calls: Calls) -> Floats:
    """Returns for each call the time in wait_tensor for it; NaN where several were under way: it may be any's."""
    waited = np.full(len(calls.row), np.nan)
    waits = np.flatnonzero(ops["op"].str.startswith(WAIT).to_numpy(bool, na_value=False))
    start = ops["start_us"].to_numpy(np.float64)
    names = ops["op"].iloc[calls.top]
    functional = [at for at, name in enumerate(names) if str(name).startswith("_c10d_functional")]
    moments = [(float(calls.start_us[at]), at, ABSENT) for at in functional]
    moments += [(float(start[row]), ABSENT, row) for row in waits.tolist()]
    under_way: list[int] = []
    for _, call, wait in sorted(moments):
        if wait < 0:
            under_way.append(call)
            continue
        if len(under_way) == 1:
            waited[under_way[0]] = float(ops["total_time_us"].iloc[wait])
        under_way = []
    return waited


def innermost(ops: pd.DataFrame, time_us: float) -> int:
    """Returns the op_id of the innermost op of the first thread in which a moment lies; -1 if there is none."""
    start, parent = ops["start_us"].to_numpy(np.float64), ops["parent_id"].to_numpy(np.int64, na_value=-1)
    begun = np.flatnonzero((ops["thread"].to_numpy() == 0) & (start <= time_us))
    row = int(begun[-1]) if len(begun) else ABSENT
    while row >= 0 and start[row] + float(ops["total_time_us"].iloc[row]) < time_us:
        row = int(parent[row])
    return row
