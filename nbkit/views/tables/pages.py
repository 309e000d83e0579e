"""Cuts what a table lists into pages of raw JSON data."""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from nbkit.analysis.query.encoded import Columns
from nbkit.analysis.query.listing import Listing
from nbkit.analysis.query.matches import Ids
from nbkit.views.tables.raw import raw_column

PAGE_BYTES = 48_000
PAGE_ROWS = 120
PAGE_MODULES = 400
# Of a page for a file, of which nothing is shown meanwhile.
FILE_BYTES = 1_000_000
FILE_ROWS = 5_000


def page_of(message: Mapping[str, Any], most: int = PAGE_ROWS) -> slice:
    """Returns the positions that a message asks for, no more than fit a page."""
    offset = max(int(message.get("offset", 0)), 0)
    return slice(offset, offset + min(int(message.get("limit", most)), most))


def page_rows(columns: Columns, depth: Ids, listing: Listing, ids: Ids) -> list[list[Any]]:
    """Returns for each listed row its number (below 0 for a group), how deep it is nested, and its cells."""
    inside, groups = ids[ids >= 0], listing.groups
    depths = depth[inside] if groups is None else np.ones(len(inside), np.int64)
    rows = iter(_rows(columns, inside, inside, depths, listing))
    if groups is None:
        return list(rows)
    heads = ids[ids < 0]
    places = groups.places(-1 - heads)
    grouped = iter(_rows(groups.columns, places, heads, np.zeros(len(heads), np.int64), listing))
    return [next(grouped) if number < 0 else next(rows) for number in ids.tolist()]


def _rows(columns: Columns, places: Ids, numbers: Ids, depths: Ids, listing: Listing) -> list[list[Any]]:
    """Returns rows with null where they do not have a column: a single row has no median."""
    has = {*columns.texts, *columns.numbers}
    none = [None] * len(places)
    cells = [raw_column(columns, places, name) if name in has else none for name in listing.names]
    return [list(row) for row in zip(numbers.tolist(), depths.tolist(), *cells, strict=True)]


def within_bytes(page: list[list[Any]], limit_bytes: int = PAGE_BYTES) -> list[list[Any]]:
    """Returns the first rows whose JSON stays under the limit, at least one: the front end asks for the rest."""
    sizes = np.cumsum([len(json.dumps(row, ensure_ascii=False).encode()) + 1 for row in page], dtype=np.int64)
    return page[: max(int(np.searchsorted(sizes, limit_bytes, side="right")), 1)]
