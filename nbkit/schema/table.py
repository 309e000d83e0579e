"""Defines a table: the columns of one frame with their dtypes and meaning; builds such frames and checks them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
from pandas.api.extensions import ExtensionArray

from nbkit.compat.frames import frame_of
from nbkit.compat.text_dtype import TEXT, dtype_name, with_text_columns
from nbkit.errors import SchemaError

DTYPES = ("int64", "Int64", "float64", "str", "bool")
# numpy has one object for each of its dtypes, and takes long to write its name.
PLAIN = {name: np.dtype(name) for name in ("int64", "float64", "bool")}
# What an absent column is filled with; a column of another dtype has no missing value and must be given.
MISSING: dict[str, Callable[[int], Any]] = {
    "Int64": lambda length: pd.arrays.IntegerArray(np.ones(length, dtype=np.int64), np.ones(length, dtype=bool)),
    "float64": lambda length: np.full(length, np.nan),
    "str": lambda length: TEXT.__from_arrow__(pa.nulls(length, pa.large_string())),  # type: ignore[attr-defined]
}


def nullable(values: npt.NDArray[np.integer]) -> pd.arrays.IntegerArray:
    """Returns an Int64 column of integers of which none is negative: -1 stands for null."""
    return pd.arrays.IntegerArray(np.array(values, dtype=np.int64), np.asarray(values) < 0)


@dataclass(frozen=True)
class Column:
    """Describes one column: its name (with the unit suffix), pandas dtype and one-line meaning."""

    name: str
    dtype: str
    meaning: str

    @property
    def pandas_dtype(self) -> Any:
        """Returns what pandas takes for the dtype: `str` means objects to pandas 2."""
        return TEXT if self.dtype == "str" else self.dtype


@dataclass(frozen=True)
class Table:
    """Describes the columns of one frame, in order."""

    name: str
    row: str
    columns: tuple[Column, ...]

    @property
    def names(self) -> list[str]:
        return [column.name for column in self.columns]

    @cached_property
    def _index(self) -> pd.Index:
        return pd.Index(self.names)

    def frame(self, data: Mapping[str, Any] | Sequence[Mapping[str, Any]] = ()) -> pd.DataFrame:
        """Returns a checked frame of this table from columns (mapping) or rows (sequence of mappings).

        Absent nullable columns are filled with null. Raises SchemaError on an unknown column, on an absent one that
        has no null, and on values the dtype cannot hold.
        """
        columns = dict(data) if isinstance(data, Mapping) else self._columns_of(data)
        names = self.names
        if unknown := [name for name in columns if name not in names]:
            raise SchemaError(f"{self.name} has no column {unknown[0]!r}; its columns are {', '.join(names)}.")
        length = max((len(values) for values in columns.values()), default=0)
        arrays = [self._array(column, columns.get(column.name), length) for column in self.columns]
        return frame_of(arrays, self._index.view())  # users may name theirs

    def check(self, df: pd.DataFrame) -> pd.DataFrame:
        """Returns `df` itself; raises SchemaError unless it has this table's columns and dtypes and a RangeIndex.

        With pandas 2, which reads texts as objects, returns a copy where columns of objects hold texts alone.
        """
        if not isinstance(df, pd.DataFrame):
            raise SchemaError(
                f"{self.name} is expected as a frame, and this is a {type(df).__name__}; give trace.{self.name}."
            )
        if not df.columns.equals(self._index):
            raise SchemaError(self._wrong_columns(list(df.columns)))
        df = with_text_columns(df, [column.name for column in self.columns if column.dtype == "str"])
        for column, dtype in zip(self.columns, df.dtypes.tolist(), strict=True):
            if dtype is not PLAIN.get(column.dtype) and dtype_name(dtype) != column.dtype:
                raise SchemaError(
                    f"{self.name}.{column.name} has dtype {dtype}, expected {column.dtype}; "
                    f"build it with {self.name.upper()}.frame()."
                )
        if not isinstance(df.index, pd.RangeIndex):
            raise SchemaError(f"{self.name} needs a RangeIndex; call .reset_index(drop=True).")
        return df

    def _wrong_columns(self, columns: list[Any]) -> str:
        """Returns what is wrong with the columns of a frame that are not this table's."""
        for table in TABLES.values():
            if columns == table.names:
                return f"{self.name} is expected, and this is the frame {table.name}; give trace.{self.name}."
        missing = [name for name in self.names if name not in columns]
        extra = [str(name) for name in columns if name not in self.names]
        return (
            f"{self.name} needs the columns {', '.join(self.names)} in this order; "
            f"missing: {', '.join(missing) or 'none'}; not expected: {', '.join(extra) or 'none'}."
        )

    def _columns_of(self, rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
        names = list(dict.fromkeys(name for row in rows for name in row))
        return {name: [row.get(name) for row in rows] for name in names}

    def _array(self, column: Column, values: Any, length: int) -> Any:
        if values is None:
            if column.dtype in MISSING:
                return MISSING[column.dtype](length)
            if length:
                raise SchemaError(f"{self.name}.{column.name} ({column.dtype}) has no null, so it must be given.")
        plain = PLAIN.get(column.dtype)
        if (
            isinstance(values, np.ndarray | ExtensionArray)
            and len(values) == length
            and (values.dtype is plain or dtype_name(values.dtype) == column.dtype)
        ):
            return values if plain is None else np.asarray(values)
        try:
            series = pd.Series(values, index=pd.RangeIndex(length), dtype=column.pandas_dtype, copy=False)
            return series.array if plain is None else np.asarray(series.array)  # to_numpy() cannot be written to
        except (TypeError, ValueError, OverflowError) as error:
            raise SchemaError(
                f"{self.name}.{column.name} cannot be read as {column.dtype} ({error}); give one value of that dtype "
                f"per row."
            ) from error


def table(name: str, row: str, *columns: tuple[str, str, str]) -> Table:
    """Returns the table of this name: what a row is, and for each column its name, dtype and meaning."""
    return Table(name, row, tuple(Column(*column) for column in columns))


# Those that a trace may hold, by name; nbkit/schema/__init__.py fills it.
TABLES: dict[str, Table] = {}
