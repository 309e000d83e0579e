"""Turns cells of a table into JSON values, which the kernel sends and the front end alone formats."""

from dataclasses import replace
from math import isfinite
from typing import Any

import pandas as pd

from nbkit.analysis.query.encoded import Columns, TextColumn
from nbkit.analysis.query.matches import Ids
from nbkit.schema import TEXT
from nbkit.units import is_null
from nbkit.views.summary.names import short_sources

Cell = int | float | str | None
# The front end cuts texts to 200 characters, and has to see that there are more.
CELL_CHARACTERS = 201
# Columns of source lines, whose paths tables shorten; details and frames have them in full.
SOURCES = ("own_source", "source", "right_source")


def with_short_sources(columns: Columns) -> Columns:
    """Returns the columns with short paths, by which tables sort, filter and group as they show them."""
    texts = {
        name: TextColumn(pd.Series(short_sources(column.values.tolist()), dtype=TEXT), column.codes)
        for name, column in columns.texts.items()
        if name in SOURCES
    }
    return replace(columns, texts={**columns.texts, **texts})


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
