"""Grows columns event by event in little memory."""

from array import array
from collections.abc import Sequence

import numpy as np

from nbkit.readers.text_file import encodable
from nbkit.timeline.events import Ints


class Sparse:
    """Collects an integer column that few events have a value in."""

    def __init__(self) -> None:
        self._rows = array("q")
        self._values = array("q")

    def __len__(self) -> int:
        return len(self._rows)

    def put(self, row: int, value: int) -> None:
        """Gives `row` this value."""
        self._rows.append(row)
        self._values.append(value)

    def put_all(self, rows: Ints, values: Ints) -> None:
        """Gives each of `rows` its value."""
        self._rows.frombytes(rows.astype(np.int64).tobytes())
        self._values.frombytes(values.astype(np.int64).tobytes())

    def dense(self, length: int, missing: int) -> Ints:
        """Returns the column with one entry per event, `missing` where none was put."""
        column = np.full(length, missing, dtype=np.int64)
        column[integers(self._rows)] = integers(self._values)
        return column


class SparseTexts:
    """Collects a text column that few events, or few different texts, fill."""

    def __init__(self) -> None:
        self._codes = Sparse()
        self._known: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._codes)

    def put(self, row: int, text: str) -> None:
        """Gives `row` this text."""
        self._codes.put(row, self._known.setdefault(text, len(self._known)))

    def put_all(self, rows: Ints, codes: Ints, texts: Sequence[str]) -> None:
        """Gives each of `rows` the text that its code stands for."""
        numbers = np.array([self._known.setdefault(text, len(self._known)) for text in texts], dtype=np.int64)
        self._codes.put_all(rows, numbers[codes])

    def dense(self, length: int) -> list[str | None]:
        """Returns the column with one entry per event, None where none was put."""
        texts = [*map(encodable, self._known), None]
        return [texts[code] for code in self._codes.dense(length, -1).tolist()]


def integers(values: "array[int]") -> Ints:
    """Returns the same numbers as int64, in memory of their own."""
    return np.array(values, dtype=np.int64)


def whole(value: object) -> int | None:
    """Returns the integer that a JSON value stands for ("128.0" too); None if it is none."""
    if isinstance(value, int):
        return None if isinstance(value, bool) else value
    try:
        return int(value)  # type: ignore[call-overload, no-any-return]
    except (TypeError, ValueError, OverflowError):
        pass
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return None
    return int(number) if number.is_integer() else None


def nanoseconds(microseconds: object) -> int:
    """Returns nanoseconds of a time in microseconds, exactly: floats are kept as they are written.

    As a float a time of the usual size, "4384683269947.116", is off by half a nanosecond, and nesting is lost.
    Raises ValueError for what is no time.
    """
    if isinstance(microseconds, str):
        front, _, decimals = microseconds.partition(".")
        if front > " " and len(decimals) <= 3:
            try:
                return int(front + decimals.ljust(3, "0"))
            except ValueError:
                pass
        return round(float(microseconds) * 1000)
    if isinstance(microseconds, int) and not isinstance(microseconds, bool):
        return microseconds * 1000
    raise ValueError(f"{microseconds!r} is no time")
