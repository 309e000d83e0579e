"""Lays out the windows of a trace one after the other, and writes their rows in call order."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from nbkit.readers.chrome.collectives import collectives_frame
from nbkit.readers.chrome.events import ChromeEvents, with_sources
from nbkit.readers.chrome.flows import forward_events
from nbkit.readers.chrome.stored.spool import read_events
from nbkit.readers.chrome.stored.windows import Window
from nbkit.schema import COLLECTIVES, nullable
from nbkit.timeline.events import ABSENT, MEMORY, Events, Ints
from nbkit.timeline.nesting import call_order
from nbkit.timeline.rows import LaidOut, laid_out, memory_frame, origin, own_threads, starts, step_ends
from nbkit.trace.storage import arrow_table, frame_schema

NUMBERED = ("op_id", "parent_id", "forward_op_id", "step", "thread")


@dataclass
class _Rows:
    """Holds rows of `ops`, by what they are put in order, and what the numbers of a window alone do not tell."""

    table: pa.Table
    key: Ints  # twice the start in ns, as `starts()` has it
    duration: Ints
    row: Ints  # in the file
    start: Ints
    thread: Ints
    parent: Ints
    forward: Ints

    def columns(self) -> tuple[Ints, ...]:
        return self.key, self.duration, self.row, self.start, self.thread, self.parent, self.forward

    def at(self, rows: Ints) -> "_Rows":
        return _Rows(self.table.take(pa.array(rows)), *(column[rows] for column in self.columns()))

    def and_more(self, more: "_Rows") -> "_Rows":
        both = (np.concatenate(pair) for pair in zip(self.columns(), more.columns(), strict=True))
        return _Rows(pa.concat_tables([self.table, more.table]), *both)


class OpsWriter:
    """Writes `ops`; work that begins later than its window waits for its place. `memory` is there at the end."""

    def __init__(
        self, folder: Path, events: ChromeEvents, known: Collection[str], main: int | None, around: Mapping[str, Any]
    ) -> None:
        """`known` is what the whole trace tells, as `laid_out()` takes it; `main` the number of its main thread.

        `around` is what stands around the events in the file.
        """
        self.events, self.known, self.main, self.around = events, known, main, around
        self.count = self.linked = 0
        self.end_us = 0.0
        self.devices: set[str] = set()
        self._origin: int | None = None  # ns, on the clock of the file
        self._waiting: _Rows | None = None
        self._threads: dict[int, int] = {}
        self._step_ends = np.empty(0, dtype=np.int64)
        self._memory: list[tuple[Events, Ints, np.ndarray]] = []
        self._collectives: list[pd.DataFrame] = []
        schema = frame_schema("ops")
        self._writer = pq.ParquetWriter(folder / "ops.parquet", schema, use_dictionary=False, write_statistics=False)

    def __enter__(self) -> "OpsWriter":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._writer.close()

    def write(self, window: Window) -> None:
        """Writes the rows of a window, and what waited and begins before its end."""
        if not window.events.num_rows:
            self._write_until(window.end, self._waiting)
            return
        events = self._linked(window)
        key = starts(events)
        order = call_order(key, events.duration_ns)
        laid = laid_out(events.at(order), self.known)
        self._origin = origin(laid.events) if self._origin is None else self._origin
        self._step_ends = np.sort(np.append(self._step_ends, step_ends(laid.events)))
        row = window.events["row"].to_numpy()
        ids = self._write_until(window.end, self._of(laid, key[order], row[order]), laid)
        if (collectives := collectives_frame(laid.ops, laid.communication, self.around)) is not None:
            placed = nullable(np.append(ids, ABSENT)[collectives["op_id"].to_numpy(np.int64, na_value=ABSENT)])
            self._collectives.append(collectives.assign(op_id=placed))
        at = np.flatnonzero(laid.events.kind == MEMORY)
        if len(at):
            inside = laid.op_id[laid.links.parent][at]
            self._memory.append((_of_memory(laid.events, at), np.append(ids, ABSENT)[inside], laid.start_us[at]))

    @property
    def origin_ns(self) -> int:
        """Returns the moment that start_us counts from, ns on the clock of the file."""
        return self._origin or 0

    def memory(self) -> pd.DataFrame | None:
        """Returns the frame of allocations; None if there is none."""
        if not self._memory:
            return None
        events, ids, times = zip(*self._memory, strict=True)
        joined = events[0]
        for more in events[1:]:
            joined = joined.and_more(more)
        return memory_frame(joined, np.concatenate(ids), np.concatenate(times))

    def collectives(self) -> pd.DataFrame | None:
        """Returns the frame of collectives; None where nothing in the file is of several processes."""
        found = [frame for frame in self._collectives if len(frame)] or self._collectives[:1]
        return COLLECTIVES.check(pd.concat(found, ignore_index=True)) if found else None

    def _linked(self, window: Window) -> Events:
        """Returns the events of a window with what arrows and frames of Python tell."""
        events = read_events(window.events)
        events.origin_ns, events.main_thread = self._origin, self.main
        if window.pairs:
            events.forward, linked = forward_events(events, window.pairs)
            self.linked += linked
        devices = {device: self.events.device_name(device) for device in {*events.texts("device")}}
        events.device = [devices[device] for device in events.texts("device")]
        return with_sources(events, window.frames, self.events.frames.lines) if len(window.frames[0]) else events

    def _of(self, laid: LaidOut, key: Ints, row: Ints) -> _Rows:
        events, rows = laid.events, laid.rows
        threads = own_threads(events, laid.links)
        self.devices |= {*laid.ops["device"].dropna().unique()}
        ends = laid.ops["start_us"] + laid.ops["total_time_us"]
        self.end_us = max(self.end_us, float(ends.max())) if len(ends) else self.end_us
        columns = (key, events.duration_ns, row, events.start_ns, threads)
        links = (laid.op_id[laid.links.parent], laid.op_id[laid.links.forward])
        return _Rows(arrow_table("ops", laid.ops), *(column[rows] for column in (*columns, *links)))

    def _write_until(self, end: int, rows: "_Rows | None", laid: LaidOut | None = None) -> Ints:
        """Writes rows in order up to a moment; returns the final number of each row of `laid`, -1 of what waits."""
        if rows is None:
            return np.empty(0, dtype=np.int64)
        new = len(rows.key) if laid is not None else 0
        if laid is not None and self._waiting is not None:
            rows = rows.and_more(self._waiting)
        order = np.lexsort((rows.row, -rows.duration, rows.key))
        ready = order[rows.key[order] < 2 * end]
        ids = np.full(len(rows.key) + 1, ABSENT, dtype=np.int64)
        ids[ready] = np.arange(self.count, self.count + len(ready))
        for links in (rows.parent, rows.forward):
            links[:new] = np.where(links[:new] >= 0, ids[links[:new]], ABSENT)
        waits = np.setdiff1d(np.arange(len(rows.key)), ready)
        self._waiting = rows.at(waits) if len(waits) else None
        if len(ready):
            self._put(rows.at(ready))
        return ids[:new]

    def _put(self, rows: _Rows) -> None:
        """Writes rows that stand in order, with the numbers that they have in the whole trace."""
        if not self._threads:
            self._threads = {self.main or 0: 0}
        threads, different = pd.factorize(rows.thread)
        numbers = [self._threads.setdefault(int(number), len(self._threads)) for number in different]
        values = {
            "op_id": np.arange(self.count, self.count + len(rows.key)),
            "parent_id": pa.array(rows.parent, mask=rows.parent < 0),
            "forward_op_id": pa.array(rows.forward, mask=rows.forward < 0),
            "step": np.searchsorted(self._step_ends, rows.start, side="right"),
            "thread": np.array(numbers, dtype=np.int64)[threads],
        }
        table = rows.table
        for name in NUMBERED:
            at = table.schema.get_field_index(name)
            table = table.set_column(at, table.schema.field(at), pa.array(values[name]))
        self._writer.write_table(table)
        self.count += len(rows.key)


def _of_memory(events: Events, rows: Ints) -> Events:
    """Returns allocations with what their frame needs of them."""
    names = ("start_ns", "duration_ns", "thread", "size_bytes", "address", "allocated_bytes")
    numbers: dict[str, Any] = {name: events.integers(name)[rows] for name in names}
    devices = events.texts("device")
    kept = [devices[row] for row in rows.tolist()]
    return Events(name=[""] * len(rows), kind=events.kind[rows], device=kept, **numbers)
