"""Builds columns from numbers: handles each distinct value once and takes it by its number."""

from collections.abc import Collection, Hashable, Sequence
from typing import TypeVar

import numpy as np
import pyarrow as pa
from pandas.api.extensions import ExtensionArray

from nbkit.schema import TEXT

Value = TypeVar("Value", bound=Hashable)


def numbered(values: Collection[Value]) -> tuple[np.ndarray, list[Value]]:
    """Returns the number of each value, dense from 0 in order of appearance, and the distinct values."""
    numbers = {value: number for number, value in enumerate(dict.fromkeys(values))}
    return np.fromiter(map(numbers.__getitem__, values), np.int64, len(values)), list(numbers)


def followed(pointers: np.ndarray) -> np.ndarray:
    """Follows each row that points at an earlier row, on and on, until one that points at itself."""
    while not np.array_equal(further := pointers[pointers], pointers):
        pointers = further
    return pointers


def text_column(codes: np.ndarray, texts: Sequence[str | None]) -> ExtensionArray:
    """Returns the `str` array of `texts[code]` for each code; a negative code is null."""
    values = pa.array(texts, pa.large_string())
    is_null = codes < 0
    indices = pa.array(codes, mask=is_null) if is_null.any() else pa.array(codes)
    column: ExtensionArray = TEXT.__from_arrow__(values.take(indices))  # type: ignore[attr-defined]
    return column


def texts(values: Sequence[str | None]) -> ExtensionArray:
    """Returns the `str` array of texts that are mostly different from each other."""
    column: ExtensionArray = TEXT.__from_arrow__(pa.array(values, pa.large_string()))  # type: ignore[attr-defined]
    return column
