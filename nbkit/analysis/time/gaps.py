"""Finds time not covered by ops: Python between them, launching of kernels, waiting for a device or another thread."""

import re
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from nbkit.analysis.time.times import host_ops, parent_rows
from nbkit.schema import OPS, TEXT
from nbkit.timeline.compiled import hides_kernels

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
# Calls of CUDA's and HIP's runtime and driver in which the host waits for the device.
SYNCHRONISING = re.compile(r"(?:cuda|hip|cu).*Synchronize.*|(?:cuda|hip|cu)Memcpy(?!.*Async).*")
OP, PYTHON, COMPILED, LAUNCH, WAIT, THREAD = KINDS = ("op", "python", "compiled", "launch", "wait", "thread")
NUMBERS = {"thread": "int64", "start_us": "float64", "gap_us": "float64", "other_threads_us": "float64"}


def is_synchronising(ops: pd.DataFrame) -> npt.NDArray[np.bool_]:
    """Returns which rows are runtime calls that wait for a device."""
    # Arrow, which holds the texts, has no look-ahead in its regular expressions.
    waiting = [name for name in ops["op"].dropna().unique() if SYNCHRONISING.fullmatch(name)]
    return ((ops["level"] == "runtime") & ops["op"].isin(waiting)).to_numpy(bool)


def time_by_kind(ops: pd.DataFrame) -> pd.DataFrame:
    """Returns self time on the host per thread, phase and kind, in order of thread, then most time first.

    Columns: thread, phase, kind, self_time_us, self_fraction of all. Kinds: op (aten), python (self time of module,
    range and API rows), compiled (that of regions of torch.compile whose fused kernels are no rows: mostly those
    kernels), launch (runtime calls that do not wait), wait (those that do), thread (time in which the main thread is in
    Python while other threads run: it mostly waits for them, so leave it out of a sum over threads).
    """
    table = _summed(_self_times(ops), ["thread", "phase", "kind"])
    table = table.sort_values(["thread", "self_time_us"], ascending=[True, False], ignore_index=True)
    return _with_fraction(table)


def gaps_by_module(ops: pd.DataFrame) -> pd.DataFrame:
    """Returns self time on the host outside ops, per model, module, phase and kind (see time_by_kind), most first.

    Columns: model, module, phase, kind, self_time_us, self_fraction of the self time of all ops.
    """
    table = _with_fraction(_summed(_self_times(ops), ["model", "module", "phase", "kind"]))
    table = table[(table["kind"] != OP) & (table["self_time_us"] > 0)]
    return table.sort_values("self_time_us", ascending=False, kind="stable", ignore_index=True)


def largest_gaps(ops: pd.DataFrame, count: int = 20) -> pd.DataFrame:
    """Returns the longest single stretches of a thread without an op or a runtime call, longest first.

    Columns: thread, start_us, gap_us, other_threads_us (of that, time in which other threads ran; main thread only),
    previous_op_id, previous_op, next_op_id, next_op (null before the first and after the last), and model, module,
    phase, source of the row that most of the gap belongs to.
    """
    host = host_ops(ops)
    parts = [_thread_gaps(host, int(thread)) for thread in np.unique(host["thread"])]
    rows = {**NUMBERS, "previous": "int64", "next": "int64"}
    gaps = pd.concat([pd.DataFrame({name: [] for name in rows}), *parts]).astype(rows)
    gaps = gaps[gaps["gap_us"] > 0].sort_values("gap_us", ascending=False, kind="stable", ignore_index=True).head(count)
    return _described(host, gaps)


def _self_times(ops: pd.DataFrame) -> pd.DataFrame:
    """Returns self time of each host row with its kind; what the main thread spends waiting for others is split off."""
    host = host_ops(ops)
    table = host[["thread", "model", "module", "phase", "self_time_us"]].assign(kind=_kinds(host))
    elsewhere = _time_of_others(host, table["kind"].to_numpy() == PYTHON)
    waiting = table.assign(self_time_us=elsewhere, kind=THREAD)[elsewhere > 0]
    table["self_time_us"] = np.maximum(table["self_time_us"] - elsewhere, 0.0)
    return pd.concat([table, waiting], ignore_index=True).astype({"kind": TEXT})


def _kinds(host: pd.DataFrame) -> npt.NDArray[np.object_]:
    level = host["level"]
    is_op, is_compiled = level.isin(["aten", "kernel"]).to_numpy(bool), hides_kernels(host, parent_rows(host))
    cases = [is_synchronising(host), (level == "runtime").to_numpy(bool), is_op, is_compiled]
    return np.select(cases, [WAIT, LAUNCH, OP, COMPILED], PYTHON).astype(object)


def _time_of_others(host: pd.DataFrame, is_python: npt.NDArray[np.bool_]) -> Floats:
    """Returns per Python row of the main thread, the part of its self time in which a row of another thread is open."""
    start, end = _spans(host)
    is_main = host["thread"].to_numpy() == 0
    result = np.zeros(len(host))
    if not is_main.all():
        row, begin, stop = _pieces(host)
        covered = _covered(*merged(start[~is_main], end[~is_main]), begin, stop)
        counts = is_python[row] & is_main[row]
        result += np.bincount(row[counts], covered[counts], minlength=len(host))
    return result


def _pieces(host: pd.DataFrame) -> tuple[Ints, Floats, Floats]:
    """Returns the stretches of each row in which no child of it runs: row, start and end."""
    start, end = _spans(host)
    parent = parent_rows(host)
    child = np.flatnonzero(parent >= 0)
    child = child[np.argsort(parent[child], kind="stable")]
    above = parent[child]
    is_first = np.append(True, above[1:] != above[:-1])[: len(above)]
    is_last = np.append(above[1:] != above[:-1], True)[: len(above)]
    before = np.where(is_first, start[above], np.append(0.0, end[child][:-1])[: len(child)])
    leaf = np.setdiff1d(np.arange(len(host)), above)
    row = np.concatenate([above, above[is_last], leaf])
    begin = np.concatenate([before, end[child[is_last]], start[leaf]])
    stop = np.concatenate([start[child], end[above[is_last]], end[leaf]])
    return row, begin, np.maximum(stop, begin)


def _thread_gaps(host: pd.DataFrame, thread: int) -> pd.DataFrame:
    """Returns all gaps of one thread; `previous` and `next` are rows of `host`, -1 where there is none."""
    start, end = _spans(host)
    is_here = host["thread"].to_numpy() == thread
    covering = np.flatnonzero(is_here & host["level"].isin(["aten", "runtime"]).to_numpy(bool))
    covering = covering[np.argsort(start[covering], kind="stable")]
    latest = np.maximum.accumulate(end[covering]) if len(covering) else end[covering]
    # An op inside another one begins before the latest end so far.
    outer = covering[start[covering] >= np.append(-np.inf, latest[:-1])[: len(covering)]]
    begin = np.concatenate([[start[is_here].min()], end[outer]])
    stop = np.concatenate([start[outer], [end[is_here].max()]])
    is_elsewhere = host["thread"].to_numpy() != thread
    busy = merged(start[is_elsewhere], end[is_elsewhere]) if thread == 0 else (np.empty(0), np.empty(0))
    columns = {
        "thread": np.full(len(begin), thread),
        "start_us": begin,
        "gap_us": stop - begin,
        "other_threads_us": _covered(*busy, begin, np.maximum(stop, begin)),
        "previous": np.concatenate([[-1], outer]),
        "next": np.concatenate([outer, [-1]]),
    }
    return pd.DataFrame(columns)


def _described(host: pd.DataFrame, gaps: pd.DataFrame) -> pd.DataFrame:
    """Returns the gaps with the ops around them and the row that each belongs to, instead of row numbers."""
    table = gaps[list(NUMBERS)].copy()
    for side in ("previous", "next"):
        row = gaps[side].to_numpy(np.int64)
        near = host[["op_id", "op"]].reindex(np.where(row < 0, len(host), row))
        table[f"{side}_op_id"] = near["op_id"].astype("Int64").to_numpy(dtype=object)
        table[f"{side}_op"] = near["op"].to_numpy(dtype=object)
    owner = host[["model", "module", "phase", "source"]].reindex(_owners(host, gaps)).reset_index(drop=True)
    types: dict[str, Any] = {"previous_op_id": "Int64", "next_op_id": "Int64", "previous_op": TEXT, "next_op": TEXT}
    return table.astype(types).join(owner)


def _owners(host: pd.DataFrame, gaps: pd.DataFrame) -> Ints:
    """Returns per gap the row that most of it is self time of; one past the last row where there is none."""
    row, begin, stop = _pieces(host)
    thread = host["thread"].to_numpy()[row]
    owners = []
    for number, start_us, gap_us in zip(gaps["thread"], gaps["start_us"], gaps["gap_us"], strict=True):
        inside = (thread == number) & (begin >= start_us) & (stop <= start_us + gap_us)
        pieces = np.flatnonzero(inside)
        owners.append(row[pieces[np.argmax((stop - begin)[pieces])]] if len(pieces) else len(host))
    return np.array(owners, dtype=np.int64)


def merged(start: Floats, end: Floats) -> tuple[Floats, Floats]:
    """Returns the union of intervals as disjoint ones, in order."""
    order = np.argsort(start, kind="stable")
    start, latest = start[order], np.maximum.accumulate(end[order]) if len(end) else end
    is_new = np.append(True, start[1:] > latest[:-1])[: len(start)]
    is_last = np.append(is_new[1:], True)[: len(start)]
    return start[is_new], latest[is_last]


def _covered(start: Floats, end: Floats, begin: Floats, stop: Floats) -> Floats:
    """Returns per interval (begin, stop) how much of it the disjoint ordered intervals (start, end) cover."""
    if not len(start):
        return np.zeros(len(begin))
    before = np.append(0.0, np.cumsum(end - start))

    def until(time: Floats) -> Floats:
        index = np.searchsorted(start, time, side="right")
        last = np.maximum(index - 1, 0)
        inside = np.minimum(time, end[last]) - start[last]
        return np.asarray(before[last] + np.where(index > 0, inside, 0.0))

    return until(stop) - until(begin)


def _spans(host: pd.DataFrame) -> tuple[Floats, Floats]:
    """Returns start and end in microseconds, to the nanosecond, so that what touches is equal."""
    start = np.rint(OPS.check(host)["start_us"].to_numpy() * 1e3)
    return start / 1e3, (start + np.rint(host["total_time_us"].to_numpy() * 1e3)) / 1e3


def _summed(times: pd.DataFrame, names: list[str]) -> pd.DataFrame:
    return times.groupby(names, dropna=False, sort=False)[["self_time_us"]].sum().reset_index()


def _with_fraction(table: pd.DataFrame) -> pd.DataFrame:
    # Waiting for other threads is time that those threads count already.
    whole = float(table.loc[table["kind"] != THREAD, "self_time_us"].sum())
    return table.assign(self_fraction=table["self_time_us"] / whole if whole else 0.0)
