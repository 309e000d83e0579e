"""Listing is what a table lists for a query: rows, or groups of them, of which some are open."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from nbkit.analysis.query.encoded import Columns
from nbkit.analysis.query.groups import Grouping, Groups, columns_of, groups_of, having, keys_of
from nbkit.analysis.query.matches import Ids, Query, matches, ordered


@dataclass(frozen=True)
class Listing:
    """Holds the rows that fit a query, and what is listed: `ids` are rows, or -1 less the first row of a group.

    `names` are the columns to show; `errors` has by column the message of each predicate that could not be used.
    """

    matched: Ids
    errors: Mapping[str, str]
    names: Sequence[str]
    ids: Ids
    groups: Groups | None = None

    def __len__(self) -> int:
        return len(self.ids)

    def position(self, row: int) -> int | None:
        """Returns where a row is listed; null where a filter leaves it out or its group is closed."""
        positions = np.flatnonzero(self.ids == row)
        return int(positions[0]) if len(positions) else None

    def closed_around(self, row: int, keys: Ids) -> int | None:
        """Returns the first row of the closed group that holds a row; null where there is none."""
        if self.groups is None or not (self.matched == row).any():
            return None
        place = self.groups.with_key(int(keys[row]), keys)
        return None if place is None else int(self.groups.first[place])


def grouping_of(query: Query) -> Grouping | None:
    """Returns how a query groups its rows; null if it does not."""
    if not query.group:
        return None
    return Grouping(**{name: value for name, value in query.group.items() if name != "open"})


def rows_listed(columns: Columns, query: Query, names: Sequence[str], within: Ids | None = None) -> Listing:
    """Lists the rows of a query without groups."""
    found = matches(columns, query, within)
    return Listing(found.ids, found.errors, names, found.ids)


def groups_listed(columns: Columns, query: Query, names: Sequence[str], within: Ids | None = None) -> Listing:
    """Lists the groups of a query, all of them closed."""
    grouping = grouping_of(query)
    assert grouping is not None
    shown = columns_of(names, columns, grouping)
    numbers = [name for name in shown if name not in columns.texts]
    of_groups = [predicate for predicate in query.predicates if having(numbers, predicate)]
    found = matches(columns, Query([one for one in query.predicates if one not in of_groups]), within)
    groups = groups_of(columns, found.ids, grouping, shown, query.sort, of_groups)
    return Listing(groups.rows, found.errors, shown, -1 - groups.first, groups)


def opened(columns: Columns, query: Query, listing: Listing) -> Listing:
    """Returns the listing with the groups open that hold the rows in the query's `open`, filtered out or not.

    Rows inside are sorted as the query says, as far as it names columns that rows have.
    """
    grouping, rows = grouping_of(query), [row for row in (query.group or {}).get("open", ()) if 0 <= row < len(columns)]
    if listing.groups is None or grouping is None or not rows:
        return listing
    keys = keys_of(columns, grouping.by)
    places = {listing.groups.with_key(key, keys) for key in keys[rows].tolist()} - {None}
    inside = {place: _sorted(columns, query, listing.groups.rows[listing.groups.group_of == place]) for place in places}
    ids = listing.groups.listing({place: ids for place, ids in inside.items() if place is not None})
    return Listing(listing.matched, listing.errors, listing.names, ids, listing.groups)


def _sorted(columns: Columns, query: Query, ids: Ids) -> Ids:
    for part in reversed(query.sort):
        if part["column"] in columns.texts or part["column"] in columns.numbers:
            ids = ordered(columns, ids, part["column"], is_descending=bool(part.get("descending")))
    return ids
