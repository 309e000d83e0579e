"""Writes the columns of a Chrome trace to Parquet files while it is read, in the order of the file."""

from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from nbkit.readers.chrome.event_columns import NUMBERS, TEXTS
from nbkit.readers.chrome.events import ChromeEvents
from nbkit.timeline.events import KERNEL, Events, Ints

# So many rows are a row group.
LEAST_ROWS = 1 << 16
TIMES = ("start_ns", "duration_ns", "thread")
EVENTS = pa.schema(
    [
        ("row", pa.int64()),
        ("kind", pa.int8()),
        *((name, pa.int64()) for name in (*TIMES, *NUMBERS)),
        *((name, pa.dictionary(pa.int32(), pa.string())) for name in ("name", *TEXTS)),
    ]
)
FRAMES = pa.schema([(name, pa.int64()) for name in ("start_ns", "duration_ns", "thread", "code")])
ARROWS = pa.schema(
    [("phase", pa.string()), ("key", pa.string()), *((name, pa.int64()) for name in ("thread", "time", "row"))]
)
SCHEMAS = {"host": EVENTS, "work": EVENTS, "frames": FRAMES, "arrows": ARROWS}


class Spool:
    """Takes the events of a file: `host` and `work` (of devices), `frames` of Python, and ends of `arrows`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.rows = self.arrows = self.tails = 0
        self._writers = {
            name: pq.ParquetWriter(self.path(name), schema, compression="lz4", use_dictionary=_texts_of(schema))
            for name, schema in SCHEMAS.items()
        }

    @property
    def most_arrows(self) -> int:
        """Returns how many arrows there can be, by their ends."""
        return max(self.tails, self.arrows - self.tails)

    def path(self, name: str) -> Path:
        return self.folder / f"{name}.parquet"

    def __enter__(self) -> "Spool":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for writer in self._writers.values():
            writer.close()

    def take(self, events: ChromeEvents) -> None:
        """Writes the events so far, once they are many."""
        if len(events) + len(events.frames) >= LEAST_ROWS:
            self.drain(events)

    def drain(self, events: ChromeEvents) -> None:
        """Writes the events so far, and has them forgotten."""
        table = event_table(events.columns.drain(), self.rows)
        self.rows += table.num_rows
        is_work = np.asarray(table["kind"]) == KERNEL
        for name, chosen in (("host", ~is_work), ("work", is_work)):
            self._write(name, table.filter(pa.array(chosen)))
        self._write("frames", pa.table(list(events.frames.drain()), schema=FRAMES))
        if ends := events.flows.drain():
            points = np.array([place[:2] for *_, place in ends], dtype=np.int64)
            order = np.arange(self.arrows, self.arrows + len(ends))
            columns = [[phase for phase, *_ in ends], [repr(key) for _, key, _ in ends], *points.T, order]
            self._write("arrows", pa.table([pa.array(column) for column in columns], schema=ARROWS))
            self.arrows += len(ends)
            self.tails += sum(phase == "s" for phase, *_ in ends)

    def _write(self, name: str, table: pa.Table) -> None:
        if table.num_rows:
            self._writers[name].write_table(table)


def event_table(events: Events, first: int) -> pa.Table:
    """Returns events as a table; their rows are numbered from `first` on."""
    columns: list[object] = [np.arange(first, first + len(events)), events.kind]
    columns += [getattr(events, name) for name in TIMES]
    columns += [_filled(events, name, missing) for name, missing in NUMBERS.items()]
    columns += [pa.array(values).cast(pa.string()).dictionary_encode() for values in _all_texts(events)]
    return pa.table([pa.array(column) for column in columns], schema=EVENTS)


def read_events(table: pa.Table) -> Events:
    """Returns the events of a table; texts that are equal are one object."""
    texts = {name: _objects(table.column(name)) for name in ("name", *TEXTS)}
    numbers = {name: table.column(name).to_numpy() for name in (*TIMES, *NUMBERS)}
    return Events(kind=table.column("kind").to_numpy(), **numbers, **texts)  # type: ignore[arg-type]


def _all_texts(events: Events) -> list[Sequence[str | None]]:
    return [events.name, *(events.texts(name) for name in TEXTS)]


def _filled(events: Events, name: str, missing: int) -> Ints:
    column: Ints | None = getattr(events, name)
    return np.full(len(events), missing, dtype=np.int64) if column is None else column


def _objects(column: pa.ChunkedArray) -> list[str | None]:
    encoded = column.combine_chunks()
    encoded = encoded if pa.types.is_dictionary(encoded.type) else encoded.dictionary_encode()
    texts = [*encoded.dictionary.to_pylist(), None]
    return [texts[code] for code in encoded.indices.fill_null(-1).to_pylist()]


def _texts_of(schema: pa.Schema) -> list[str]:
    return [field.name for field in schema if pa.types.is_dictionary(field.type)]
