"""Turns cells of a table into JSON values, which the kernel sends and the front end alone formats."""

from math import isfinite
from typing import Any

from nbkit.analysis.query.encoded import Columns
from nbkit.analysis.query.matches import Ids
from nbkit.units import is_null

Cell = int | float | str | None
# The front end cuts texts to 200 characters, and has to see that there are more.
CELL_CHARACTERS = 201


def raw_column(columns: Columns, ids: Ids, name: str) -> list[Cell]:
    """Returns the cells of one column."""
    if name in columns.texts:
        texts = columns.texts[name]
        return [raw(texts.text_at(row)) for row in ids.tolist()]
    return [raw(value) for value in columns.number(name)[ids].tolist()]


def raw(value: Any, characters: int = CELL_CHARACTERS) -> Cell:
    """Turns one value into JSON: null if it is missing, 'Infinity' for an infinite one, which JSON lacks."""
    if isinstance(value, str):
        return value[:characters]
    if is_null(value):
        return None
    number = float(value)
    if not isfinite(number):
        return "Infinity" if number > 0 else "-Infinity"
    return int(number) if number.is_integer() else number
