"""Queries the Parquet files of all ranks by DuckDB: a view per frame, with the column `rank`; memory stays bounded."""

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pandas as pd
import pyarrow as pa

from nbkit.compat.text_dtype import TEXT
from nbkit.errors import OptionError, TraceError, first_line
from nbkit.progress import Progress

EXTRA = 'Traces of several ranks are read by DuckDB, which is not installed; run pip install "nbkit-torch[ranks]".'
# What a query may take before it goes on in files of the temporary folder; each thread needs a part of it.
MEMORY, MOST_THREADS = "256MB", 4
# The last rank=N of a path, whatever other NAME=VALUE folders are above it.
RANK = r"CAST(regexp_extract(filename, 'rank=([0-9]+)[/\\][^/\\]*$', 1) AS BIGINT)"
BATCH = 100_000  # rows of a part
Files = Mapping[str, Mapping[int, Path]]


def quoted(name: str) -> str:
    """Returns the name of a column or view as SQL has it."""
    return '"' + name.replace('"', '""') + '"'


def text_of(text: str) -> str:
    """Returns a text as SQL has it."""
    return "'" + text.replace("'", "''") + "'"


class Database:
    """Holds the views of a job; `files` are the Parquet files by frame and rank. Opened at the first query."""

    def __init__(self, files: Files) -> None:
        try:
            import duckdb
        except ImportError as error:
            raise TraceError(EXTRA) from error
        self._duckdb = duckdb
        self.files = files

    @cached_property
    def _connection(self) -> Any:
        folder = Path(tempfile.gettempdir()) / f"nbkit-{os.getpid()}-{uuid4().hex[:8]}"
        settings: dict[str, str | bool | int | float | list[str]] = {
            "memory_limit": MEMORY,
            "threads": min(os.cpu_count() or 1, MOST_THREADS),
            "temp_directory": str(folder),
            # Nothing is fetched from the network.
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
        }
        connection = self._duckdb.connect(config=settings)
        for name, files in self.files.items():
            if files:
                connection.execute(f"CREATE VIEW {quoted(name)} AS {self._view(name)}")
        return connection

    def _view(self, name: str) -> str:
        files = ", ".join(text_of(str(file)) for file in self.files[name].values())
        own = ", rank" if name == "collectives" else ""  # as the folder says, whatever the row does
        return f"SELECT {RANK} AS rank, * EXCLUDE (filename{own}) FROM read_parquet([{files}], filename = true, \
hive_partitioning = false)"

    def batches(self, query: str, parameters: Sequence[Any] = ()) -> Iterator[pd.DataFrame]:
        """Yields the result of a query in parts, for results that need not be in memory at once."""
        with self._running(query, parameters) as relation:
            for batch in relation.to_arrow_reader(BATCH):
                yield _frame(pa.Table.from_batches([batch]))

    def rows_at(self, name: str, places: Mapping[int, Sequence[int]], columns: Sequence[str]) -> pd.DataFrame:
        """Returns the rows at these places in the files of their ranks, in the order of the files.

        Row groups without any of them are not read.
        """
        names = ", ".join(quoted(column) for column in columns if column != "rank")
        parts = [
            f"SELECT {rank} AS rank, {names} FROM read_parquet({text_of(str(self.files[name][rank]))}, "
            f"hive_partitioning = false, file_row_number = true) WHERE file_row_number IN ({', '.join(map(str, at))})"
            for rank, at in places.items()
        ]
        return self.frame(" UNION ALL ".join(parts))

    def frame(self, query: str, parameters: Sequence[Any] = ()) -> pd.DataFrame:
        """Returns the result of a query; integers with null are Int64, texts as in all frames. Raises OptionError."""
        with self._running(query, parameters) as relation:
            return _frame(pa.table({}) if relation is None else relation.to_arrow_table())

    @contextmanager
    def _running(self, query: str, parameters: Sequence[Any]) -> Iterator[Any]:
        cursor = self._connection.cursor()
        try:
            with Progress(lambda: "DuckDB: querying the ranks", done=lambda: _fraction(cursor)):
                yield cursor.sql(query, params=[_plain(value) for value in parameters] or None)
        except (self._duckdb.IOException, self._duckdb.OutOfMemoryException) as error:
            raise TraceError(
                f"The query could not be finished: {first_line(error).rstrip('.')}. Ask for less, or give it more "
                f"memory: trace.sql(\"SET memory_limit = '4GB'\")."
            ) from error
        except self._duckdb.Error as error:
            known = ", ".join(name for name, files in self.files.items() if files)
            raise OptionError(f"{first_line(error).rstrip('.')}; the views are {known}, each with rank.") from error
        finally:
            cursor.close()


def _frame(table: pa.Table) -> pd.DataFrame:
    return pd.DataFrame({name: _column(table.column(name)) for name in table.column_names})


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _fraction(cursor: Any) -> float | None:
    percent = cursor.query_progress()
    return percent / 100 if percent > 0 else None


def _column(column: pa.ChunkedArray) -> Any:
    """Returns a column as frames of nbkit have it; a sum of integers, which DuckDB makes wider, is an integer, too."""
    if pa.types.is_decimal(column.type):
        scale = column.type.scale
        column = column.cast(pa.float64() if scale or _is_wide(column) else pa.int64())
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type) or pa.types.is_null(column.type):
        return pd.Series(column.to_pandas(), dtype=TEXT)
    if pa.types.is_integer(column.type):
        numbers = column.cast(pa.int64(), safe=False)
        missing = np.asarray(numbers.is_null())
        values = np.asarray(numbers.fill_null(0), dtype=np.int64)
        return pd.arrays.IntegerArray(values.copy(), missing) if missing.any() else values
    return column.to_pandas()


def _is_wide(column: pa.ChunkedArray) -> bool:
    return any(abs(value) >= 2**63 for value in column.drop_null().to_pylist())
