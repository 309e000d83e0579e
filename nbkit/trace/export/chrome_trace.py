"""Writes a Chrome trace, which ui.perfetto.dev and chrome://tracing open, and nbkit.load() reads back as it was."""

import json
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from nbkit.schema import COLLECTIVES, MEMORY, MODULES, OPS, SCHEMA_VERSION, TIMINGS, Table
from nbkit.trace.atomic_write import writing
from nbkit.trace.export.tracks import Tracks, tracks

# Frames that are written beside the events, as they are.
BESIDE = (MODULES, TIMINGS, COLLECTIVES)
# Columns that stand in an event's own fields; all others are its args.
OWN_OPS = ("op", "start_us", "total_time_us")
OWN_MEMORY = ("time_us",)
# Categories as torch.profiler names them, so that other tools know host from device.
CATEGORIES = {"aten": "cpu_op", "runtime": "cuda_runtime", "kernel": "kernel"}
COPIES = {"Memcpy": "gpu_memcpy", "Memset": "gpu_memset"}
Event = dict[str, Any]


def write_chrome_trace(
    ops: pd.DataFrame, frames: Mapping[str, pd.DataFrame], meta: Mapping[str, Any], path: str | Path
) -> Path:
    """Writes the file, gzipped if its name ends in .gz, and returns its path.

    It holds `ops` and of `frames` `memory`, `modules`, `timings` and `collectives` in full; its notes name the others.
    Raises TraceError if the file cannot be written or the ops have no times.
    """
    placed = tracks(ops)
    target = Path(path)
    with writing(target, "the Chrome trace") as file:
        file.write('{"displayTimeUnit": "ns", "nbkit": ')
        json.dump(_head(frames, meta), file, default=str, separators=(",", ":"))
        file.write(',\n"traceEvents": [')
        between = "\n"
        for event in chain(
            _names(placed), _slices(ops, placed), _arrows(ops, placed), _memory(frames.get("memory"), placed)
        ):
            file.write(between + json.dumps(event, separators=(",", ":"), ensure_ascii=False, allow_nan=False))
            between = ",\n"
        file.write("\n]}\n")
    return target


def _head(frames: Mapping[str, pd.DataFrame], meta: Mapping[str, Any]) -> dict[str, Any]:
    """Returns all that is no event: meta, and the frames that are written beside."""
    beside = {table.name: _columns(frames[table.name], table) for table in BESIDE if table.name in frames}
    written = {OPS.name, MEMORY.name, *beside}
    left = [name for name, frame in frames.items() if name not in written and len(frame)]
    note = f"not in the Chrome trace: {', '.join(left)}; Trace.save() keeps everything"
    if left:
        meta = {**meta, "notes": [*meta.get("notes", []), note]}
    return {"schema_version": SCHEMA_VERSION, "meta": meta, "memory": "memory" in frames, "frames": beside}


def _columns(frame: pd.DataFrame, table: Table) -> dict[str, list[Any]]:
    return {name: _plain(frame[name]) for name in table.names}


def _plain(column: pd.Series) -> list[Any]:
    """Returns the values as JSON has them: null for what is missing."""
    values = column.astype(object)
    return values.where(column.notna(), None).tolist()


def _rows(frame: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Yields each row's values by column, without those that are missing."""
    names = list(frame.columns)
    for values in zip(*(_plain(frame[name]) for name in names), strict=True):
        yield {name: value for name, value in zip(names, values, strict=True) if value is not None}


def _names(placed: Tracks) -> Iterator[Event]:
    """Yields names and order of processes (the host and each device) and of their threads."""
    processes = _processes(placed)
    for name, pid in processes.items():
        yield {"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": name}}
        yield {"ph": "M", "name": "process_sort_index", "pid": pid, "tid": 0, "args": {"sort_index": pid}}
    for tid, (name, group) in enumerate(zip(placed.names, placed.groups, strict=True)):
        pid = processes[group]
        yield {"ph": "M", "name": "thread_name", "pid": pid, "tid": tid, "args": {"name": name}}
        yield {"ph": "M", "name": "thread_sort_index", "pid": pid, "tid": tid, "args": {"sort_index": tid}}


def _processes(placed: Tracks) -> dict[str, int]:
    return {name: pid for pid, name in enumerate(dict.fromkeys(("host", *placed.groups)), start=1)}


def _slices(ops: pd.DataFrame, placed: Tracks) -> Iterator[Event]:
    """Yields one complete event per op, in call order."""
    processes = _processes(placed)
    pids = [processes[group] for group in placed.groups]
    for row, tid in zip(_rows(ops), placed.number.tolist(), strict=True):
        args = {name: value for name, value in row.items() if name not in OWN_OPS}
        times = {"ts": row["start_us"], "dur": row["total_time_us"]}
        yield {"ph": "X", "cat": _category(row), "name": row["op"], "pid": pids[tid], "tid": tid, **times, "args": args}


def _category(row: Event) -> str:
    if row["level"] == "kernel":
        return COPIES.get(row["op"][:6], "kernel")
    return CATEGORIES.get(row["level"], "user_annotation")


def _arrows(ops: pd.DataFrame, placed: Tracks) -> Iterator[Event]:
    """Yields arrows from each forward op to its backward work, and from each launch to what it launched."""
    parent = ops["parent_id"].fillna(-1).to_numpy(dtype=np.int64)
    forward = ops["forward_op_id"].fillna(-1).to_numpy(dtype=np.int64)
    is_work = (ops["level"] == "kernel").to_numpy()
    above = np.append(forward, -1)[parent]
    first = np.flatnonzero((forward >= 0) & (forward != above) & ~is_work)
    launched = np.flatnonzero(is_work & (parent >= 0))
    yield from _pairs("fwdbwd", forward[first], first, ops, placed)
    yield from _pairs("ac2g", parent[launched], launched, ops, placed)


def _pairs(category: str, tails: Any, heads: Any, ops: pd.DataFrame, placed: Tracks) -> Iterator[Event]:
    processes = _processes(placed)
    starts, number = ops["start_us"].tolist(), placed.number.tolist()
    for count, ends in enumerate(zip(tails.tolist(), heads.tolist(), strict=True)):
        for phase, op in zip(("s", "f"), ends, strict=True):
            tid = number[op]
            where = {"pid": processes[placed.groups[tid]], "tid": tid, "ts": starts[op]}
            binding = {"bp": "e"} if phase == "f" else {}
            yield {"ph": phase, "cat": category, "name": category, "id": count + 1, **where, **binding}


def _memory(frame: pd.DataFrame | None, placed: Tracks) -> Iterator[Event]:
    """Yields an instant with all that is known per allocation or free, and a counter of the bytes on each device."""
    if frame is None:
        return
    pid, held = _processes(placed)["host"], dict[str, int]()
    for row in _rows(frame):
        device = row.get("device", "unknown")
        held[device] = row.get("allocated_bytes", held.get(device, 0) + row["delta_bytes"])
        args = {name: value for name, value in row.items() if name not in OWN_MEMORY}
        tid = placed.number[row["op_id"]] if "op_id" in row else 0
        at = {"pid": pid, "ts": row["time_us"]}
        yield {"ph": "i", "s": "t", "cat": "cpu_instant_event", "name": "[memory]", "tid": int(tid), **at, "args": args}
        yield {"ph": "C", "name": f"allocated on {device}", **at, "args": {"bytes": held[device]}}
