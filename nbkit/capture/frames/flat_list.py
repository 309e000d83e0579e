"""Reads a flat list of records as columns: the fields of one record after the other, as the hot path keeps them."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from nbkit.capture.frames.string_columns import numbered_objects


class FlatList:
    """Reads `values`, the `fields` of each record in turn; `native` is the library that reads them, None in Python."""

    def __init__(self, values: list[Any], fields: Sequence[str], native: Any | None = None) -> None:
        self.values, self.fields, self.native = values, fields, native
        self.count = len(values) // len(fields)

    def integers(self, field: str) -> np.ndarray:
        """Returns an int64 column, one entry for each record. Raises TypeError if one of them is no integer."""
        first, step = self.fields.index(field), len(self.fields)
        if self.native is None:
            return np.array(self.values[first::step], dtype=np.int64)
        column: np.ndarray = self.native.integers(self.values, first, step)
        return column

    def objects(self, field: str) -> tuple[np.ndarray, list[Any]]:
        """Returns the number of each record's object, dense from 0 by first appearance, and the objects by identity."""
        first, step = self.fields.index(field), len(self.fields)
        if self.native is None:
            return numbered_objects(self.values[first::step])
        numbers, distinct = self.native.objects(self.values, first, step)
        return numbers, distinct
