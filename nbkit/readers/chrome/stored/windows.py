"""Cuts a spooled trace into windows of time that can be laid out apart: nothing is open at their ends."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from nbkit.readers.chrome.events import DAY_NS, LATEST_NS, ChromeEvents, overlap_note
from nbkit.readers.chrome.flows import ThreadTime
from nbkit.readers.chrome.ranks import REPEATED
from nbkit.readers.chrome.stored.spool import Spool
from nbkit.timeline.events import HOST, RUNTIME, Ints
from nbkit.timeline.names import ACCUMULATION, BACKWARD_NODE
from nbkit.timeline.rows import FLOPS, WORK

# So many events are in a window, or more where none can be cut off before.
WINDOW = 50_000
MEMORY_LIMIT = "160MB"
BEFORE, AFTER = -LATEST_NS, LATEST_NS + 1
# Device work goes with its launch, else with the op that has its id, else with what happens when it begins.
WORK_AT = f"""
    WITH launches AS (SELECT correlation, max(start_ns) AS begins FROM host
                      WHERE kind = {RUNTIME} AND correlation > 0 GROUP BY 1),
         ops AS (SELECT own_id, max(start_ns) AS begins FROM host WHERE kind = {HOST} AND own_id > 0
                 AND own_id IN (SELECT external_id FROM work) GROUP BY 1)
    SELECT work.*, coalesce(launches.begins, ops.begins, work.start_ns) AS begins FROM work
    LEFT JOIN launches ON work.correlation = launches.correlation
    LEFT JOIN ops ON work.external_id = ops.own_id"""
PAIRS = """
    WITH tails AS (SELECT key, arg_max(thread, row) AS thread, arg_max(time, row) AS time FROM arrows
                   WHERE phase = 's' GROUP BY 1)
    SELECT tails.thread AS tail_thread, tails.time AS tail, heads.thread AS head_thread, heads.time AS head, row
    FROM arrows AS heads JOIN tails USING (key) WHERE phase = 'f'"""
# A gradient is accumulated for the node before it on its thread, which has to be in its window.
OPEN = f"""
    SELECT start_ns, start_ns + duration_ns AS end_ns FROM host
    UNION ALL SELECT least(tail, head), greatest(tail, head) FROM pairs
    UNION ALL SELECT coalesce(before, start_ns), start_ns FROM (
        SELECT name, start_ns, lag(start_ns) OVER (PARTITION BY thread ORDER BY start_ns, -duration_ns, row) AS before
        FROM host WHERE kind = {HOST} AND starts_with(name, '{BACKWARD_NODE}')) WHERE name = '{ACCUMULATION}'
    ORDER BY 1"""
OVERLAPS = """
    SELECT arg_min(stream, row), sum(duration_ns)::BIGINT, sum(greatest(ends - greatest(start_ns, before), 0))::BIGINT
    FROM (SELECT *, start_ns + duration_ns AS ends, coalesce(max(start_ns + duration_ns) OVER (PARTITION BY thread
          ORDER BY start_ns, row ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), start_ns) AS before
          FROM work WHERE duration_ns > 0) GROUP BY thread ORDER BY thread"""


@dataclass(frozen=True)
class Window:
    """Holds the events that begin from `start` to `end`, ns, and the work they launch."""

    end: int
    events: pa.Table  # in the order of the file
    pairs: list[tuple[ThreadTime, ThreadTime]]
    frames: tuple[Ints, Ints, Ints, Ints]


class Windows:
    """Answers what the windows of a spooled trace are."""

    def __init__(self, spool: Spool, events: ChromeEvents) -> None:
        import duckdb

        self._events = events
        self._connection = duckdb.connect()
        folder = str(spool.folder / "more")
        self._connection.execute(f"SET threads=1; SET memory_limit='{MEMORY_LIMIT}'; SET temp_directory='{folder}'")
        for name in ("host", "work", "frames", "arrows"):
            self._view(name, str(spool.path(name)))
        for name, query in (("pairs", PAIRS), ("launched", WORK_AT)):
            path = str(spool.folder / f"{name}.parquet")
            self._connection.execute(f"COPY ({query}) TO '{path}' (FORMAT parquet, COMPRESSION lz4)")
            self._view(name, path)

    def close(self) -> None:
        self._connection.close()

    def _view(self, name: str, path: str) -> None:
        quoted = path.replace("'", "''")
        self._connection.execute(f"CREATE VIEW {name} AS SELECT * FROM read_parquet('{quoted}')")

    def _rows(self, query: str) -> list[tuple[Any, ...]]:
        rows: list[tuple[Any, ...]] = self._connection.execute(query).fetchall()
        return rows

    def why_not(self) -> str | None:
        """Returns why the trace cannot be laid out in windows; None if it can."""
        if len(self._events.launches):
            return "arrows link kernels of an NPU with their ops"
        fewer = f"count(*) FILTER (abs(start_ns) < {DAY_NS}), count(*) FILTER (start_ns > {3 * DAY_NS})"
        first, later = self._rows(
            f"SELECT {fewer} FROM (SELECT start_ns FROM host UNION ALL SELECT start_ns FROM work)"
        )[0]
        if first and later:
            return "its events are on two clocks"
        processes = pd.factorize(np.array([str(pid) for pid in self._events.columns.processes], dtype=object))[0]
        numbers = pa.table({"thread": np.arange(len(processes)), "process": processes.astype(np.int64)})
        self._connection.register("processes", numbers)
        repeated = self._rows(
            f"SELECT 1 FROM (SELECT process, count(*) n, count(DISTINCT own_id) d FROM host "
            f"JOIN processes USING (thread) WHERE kind = {HOST} AND own_id > 0 GROUP BY 1) "
            f"WHERE n - d >= greatest({REPEATED} * n, 1)"
        )
        if repeated:
            return "ranks share a process id in it"
        for column, kind in (("own_id", HOST), ("correlation", RUNTIME)):
            chosen = f"FROM host JOIN processes USING (thread) WHERE kind = {kind} AND {column} > 0"
            if self._rows(f"SELECT count(DISTINCT process) {chosen}")[0][0] > 1 and self._rows(
                f"SELECT 1 {chosen} GROUP BY {column} HAVING min(process) <> max(process) LIMIT 1"
            ):
                return "processes in it use the same ids"
        return None

    def known(self) -> set[str]:
        """Returns what the whole trace tells that a part may lack, in the words of `laid_out()`."""
        queries = {WORK: "SELECT 1 FROM work LIMIT 1", FLOPS: "SELECT 1 FROM host WHERE flops > 0 LIMIT 1"}
        return {name for name, query in queries.items() if self._rows(query)}

    def first_thread(self) -> int | None:
        """Returns the thread of the first event of the host, None if there is none."""
        rows = self._rows("SELECT thread FROM host ORDER BY start_ns, duration_ns DESC, row LIMIT 1")
        return int(rows[0][0]) if rows else None

    def notes(self) -> list[str]:
        """Returns what is to be said of kernels that overlap."""
        return [note for stream, taken, passed in self._rows(OVERLAPS) for note in overlap_note(stream, taken, passed)]

    def cuts(self) -> list[int]:
        """Returns the ends of windows, in ns; the last one is behind all."""
        cuts: list[int] = []
        latest, count = BEFORE, 0
        for batch in self._connection.sql(OPEN).to_arrow_reader(1 << 16):
            start, end = (column.to_numpy() for column in batch.columns)
            before = np.maximum.accumulate(np.append(latest, end))
            for at in np.flatnonzero(start > before[:-1]).tolist():
                if count + at >= WINDOW:
                    cuts.append(int(start[at]))
                    count = -at
            latest, count = int(before[-1]), count + len(start)
        return [*cuts, AFTER]

    def __iter__(self) -> Iterator[Window]:
        begin = BEFORE
        for end in self.cuts():
            yield self._window(begin, end)
            begin = end

    def _window(self, begin: int, end: int) -> Window:
        within = f"BETWEEN {begin} AND {end - 1}"
        events = self._connection.sql(
            f"SELECT *, start_ns AS begins FROM host WHERE start_ns {within} "
            f"UNION ALL SELECT * FROM launched WHERE begins {within} ORDER BY row"
        ).to_arrow_table()
        pairs = self._rows(f"SELECT tail_thread, tail, head_thread, head FROM pairs WHERE tail {within} ORDER BY row")
        frames = self._connection.sql(
            f"SELECT * FROM frames WHERE start_ns < {end} AND start_ns + duration_ns > {begin}"
        ).to_arrow_table()
        columns = tuple(column.to_numpy() for column in frames.columns)
        links = [((one, time), (other, later)) for one, time, other, later in pairs]
        start, duration, thread, code = columns
        return Window(end, events, links, (start, duration, thread, code))
