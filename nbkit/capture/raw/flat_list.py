"""Keeps records flat in one list, the fields of one after the other, and reads them as columns."""

from collections.abc import Sequence
from typing import Any

import numpy as np


class FlatList(list[Any]):
    """Holds records of objects, then integers, so that each adds to one list: small objects cost collections.

    The native recorder keeps its records in a log of its own, which has the same methods (native/src/log.h).
    """

    def __init__(self, objects: Sequence[str], integers: Sequence[str]) -> None:
        super().__init__()
        self.fields = (*objects, *integers)
        self.step = len(self.fields)
        self.nothing = (*[None] * len(objects), *[0] * len(integers))

    @property
    def row_count(self) -> int:
        """Returns the number of records."""
        return len(self) // self.step

    def add(self, record: Sequence[Any]) -> int:
        """Adds a record; returns its row."""
        self.extend(record)
        return self.row_count - 1

    def reserve(self) -> int:
        """Takes the place of a record that is put later, of None and 0 until then; returns its row."""
        return self.add(self.nothing)

    def put(self, row: int, record: Sequence[Any]) -> None:
        self[row * self.step : (row + 1) * self.step] = record

    def clear_row(self, row: int) -> None:
        """Empties a record, as if it had never been put."""
        self.put(row, self.nothing)

    def value(self, row: int, field: str) -> Any:
        return self[row * self.step + self.fields.index(field)]

    def integers(self, field: str) -> np.ndarray:
        """Returns an int64 column, one entry for each record. Raises TypeError if one of them is no integer."""
        return np.array(self[self.fields.index(field) :: self.step], dtype=np.int64)

    def objects(self, field: str) -> tuple[np.ndarray, list[Any]]:
        """Returns the number of each record's object, dense from 0 by first appearance, and the objects by identity."""
        values = self[self.fields.index(field) :: self.step]
        identities = list(map(id, values))  # their own comparison may be slow or not defined
        distinct = dict(zip(identities, values, strict=True))
        numbers = {identity: number for number, identity in enumerate(distinct)}
        return np.fromiter(map(numbers.__getitem__, identities), np.int64, len(values)), list(distinct.values())
