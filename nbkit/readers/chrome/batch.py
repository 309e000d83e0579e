"""Parses many events of a Chrome trace at once, by DuckDB, into columns of JSON values."""

import json
import tempfile
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from nbkit.timeline.events import Ints

Flags = npt.NDArray[np.bool_]
# An event beyond this is left to the other parser, as all are that DuckDB does not take.
LARGEST_EVENT = 1 << 21
FIELDS = ("ph", "cat", "name", "pid", "tid", "id")
ID, ID_OF_OLD = "External id", "external id"  # until torch 1.11
OF_COLLECTIVES = (
    *("Collective name", "In msg nelems", "dtype", "Process Group Description", "Process Group Name", "Group size"),
    *("Input Dims", "Input type", "Out msg nelems", "Process Group Ranks", "Seq", "Dst Rank", "Src Rank"),
)
ARGUMENTS = (
    *OF_COLLECTIVES,
    *("Concrete Inputs", "Call stack", "flops", "correlation", "stream", "device"),
    *("Total Allocated", "Addr", "Device Type", "Device Id", "Task Type"),
)
# DuckDB tells names of columns apart without their case, so each of these is asked for alone.
WORK_BYTES, MEMORY_BYTES = "bytes", "Bytes"
# Floats stay the text that the file has, as the other parser leaves them.
EXACT = json.JSONDecoder(strict=False, parse_float=str)
# Times are exact as floats of 64 bits up to here, in microseconds with three decimals.
MOST_EXACT_US = 1 << 43


def is_installed() -> bool:
    """Returns whether the parser is there; without it events are read one after the other."""
    return find_spec("duckdb") is not None


class Column:
    """Holds a column of JSON values: few different ones, each decoded once, when it is asked for."""

    def __init__(self, column: pa.ChunkedArray) -> None:
        encoded = column.combine_chunks().dictionary_encode()
        self.texts: list[str] = encoded.dictionary.to_pylist()
        self.codes: Ints = encoded.indices.fill_null(-1).to_numpy().astype(np.int64)
        self._values: dict[int, Any] = {}

    @property
    def is_known(self) -> Flags:
        return self.codes >= 0

    def value(self, code: int) -> Any:
        """Returns the value that a code stands for; None for -1."""
        if code < 0:
            return None
        if code not in self._values:
            self._values[code] = EXACT.decode(self.texts[code])
        return self._values[code]

    @cached_property
    def values(self) -> list[Any]:
        """Returns the different values by code; the last entry is None, which code -1 takes."""
        return [*(self.value(code) for code in range(len(self.texts))), None]


class Batch:
    """Holds events column by column."""

    def __init__(self, table: pa.Table, memory_bytes: pa.ChunkedArray | None) -> None:
        self.table, self.memory_bytes = table, memory_bytes
        self._columns: dict[str, Column] = {}

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def column(self, name: str) -> Column:
        if name not in self._columns:
            self._columns[name] = Column(self.table.column(name))
        return self._columns[name]

    def integers(self, name: str) -> tuple[Ints, Flags] | None:
        """Returns the integers of a column and where it has one; None if a value is none or too large."""
        column = self.table.column(name)
        try:
            numbers = pc.cast(column, pa.int64())
        except pa.ArrowInvalid:
            return None
        return numbers.fill_null(0).to_numpy(), numbers.is_valid().to_numpy()

    def times(self, name: str) -> tuple[npt.NDArray[np.float64], Flags]:
        """Returns times in microseconds and where there is one."""
        column = self.table.column(name)
        return column.fill_null(0.0).to_numpy(), column.is_valid().to_numpy()

    def arguments(self, row: int) -> dict[str, Any]:
        """Returns the arguments of one event that tell what a collective moves."""
        columns = ((name, self.column(name)) for name in OF_COLLECTIVES)
        return {name: column.value(int(column.codes[row])) for name, column in columns if column.codes[row] >= 0}


def nanoseconds(microseconds: npt.NDArray[np.float64]) -> tuple[Ints, Flags]:
    """Returns nanoseconds, as `columns.nanoseconds` of the text makes them, and which may be off by rounding."""
    is_fine = np.abs(microseconds) < MOST_EXACT_US
    is_fine |= (microseconds == np.floor(microseconds)) & (np.abs(microseconds) < 1 << 51)
    known = np.where(is_fine, microseconds, 0.0)
    whole = np.floor(known)
    rest = (known - whole) * 1000
    has_three = np.abs(rest - np.rint(rest)) <= np.spacing(np.abs(known)) * 1000 + 1e-9
    exact = whole.astype(np.int64) * 1000 + np.rint(rest).astype(np.int64)
    return np.where(has_three, exact, np.rint(known * 1000).astype(np.int64)), ~is_fine


class Parser:
    """Parses pieces of a list of events; one for each file, closed at its end."""

    def __init__(self) -> None:
        import duckdb

        self._folder = tempfile.TemporaryDirectory(prefix="nbkit-")
        self._path = Path(self._folder.name) / "events.json"
        self._connection = duckdb.connect()
        self._connection.execute("SET threads=1; SET autoinstall_known_extensions=false")
        self._error = duckdb.Error

    def close(self) -> None:
        self._connection.close()
        self._folder.cleanup()

    def parse(self, text: str) -> Batch | None:
        """Returns the events of a text, separated by commas; None where it is odd in any way."""
        if ID_OF_OLD in text and ID in text:
            return None
        own_id = ID_OF_OLD if ID_OF_OLD in text else ID
        has_memory = f'"{MEMORY_BYTES}"' in text
        try:
            self._path.write_bytes(f"[{text}]".encode())
            table = self._query((own_id, WORK_BYTES), "true").rename_columns(_NAMES)
            more = self._query((MEMORY_BYTES,), """name = '"[memory]"'""") if has_memory else None
        except (self._error, OSError):
            return None
        return Batch(table, None if more is None else more.column(MEMORY_BYTES))

    def _query(self, names: tuple[str, ...], condition: str) -> pa.Table:
        arguments = ", ".join(f'"{name}" JSON' for name in (*ARGUMENTS, *names))
        columns = ", ".join(f"{name}: 'JSON'" for name in FIELDS)
        chosen = ", ".join(f'args."{name}"' for name in (*ARGUMENTS, *names))
        return self._connection.sql(
            f"SELECT {', '.join(FIELDS)}, ts, dur, {chosen} FROM read_json(?, format='array', "
            f"maximum_object_size={LARGEST_EVENT}, columns={{{columns}, ts: 'DOUBLE', dur: 'DOUBLE', "
            f"args: 'STRUCT({arguments})'}}) WHERE {condition}",
            params=[str(self._path)],
        ).to_arrow_table()


_NAMES = [*FIELDS, "ts", "dur", *ARGUMENTS, ID, WORK_BYTES]
