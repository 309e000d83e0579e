"""TableSource answers the questions of tables with pages of raw JSON data."""

import json
from abc import abstractmethod
from collections.abc import Callable, Mapping
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from nbkit.analysis.query.encoded import Columns, Floats
from nbkit.analysis.query.groups import COUNTS, keys_of
from nbkit.analysis.query.listing import Listing, grouping_of, groups_listed, opened, rows_listed
from nbkit.analysis.query.matches import Ids, Query
from nbkit.analysis.query.profile import profiles
from nbkit.errors import OptionError
from nbkit.step.decode import cells_in
from nbkit.trace.trace import Trace
from nbkit.views.tables.answering import Answer, Answering, Message
from nbkit.views.tables.raw import CELL_CHARACTERS, raw, raw_column

PAGE_BYTES = 48_000
PAGE_ROWS = 120
PAGE_MODULES = 400
# Of a page for a file, of which nothing is shown meanwhile.
FILE_BYTES = 1_000_000
FILE_ROWS = 5_000
TREE_COLUMNS = ("model", "module", "type", "depth", "has_children", "ops_below", "self_time_below_us")


class TableSource(Answering):
    """Answers a table's questions about one trace; keeps the matches of the last few queries, as paging asks again."""

    # What a row is called, and the name of its number in messages.
    noun: ClassVar[str]
    key: ClassVar[str]
    # The column that has bars: all of one scale, up to the largest value shown.
    bar: str
    # The query before anything is asked.
    natural: ClassVar[Mapping[str, Any]] = {}

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.listed = lru_cache(maxsize=4)(self._listed)
        self.opened = lru_cache(maxsize=4)(self._opened)
        self.totals = lru_cache(maxsize=4)(self._totals)
        self.within: Ids | None = None
        self._shown = self._text_of({})

    @property
    @abstractmethod
    def columns(self) -> Columns:
        """Returns the encoded rows."""

    @property
    @abstractmethod
    def shown_columns(self) -> list[str]:
        """Returns the columns to show, in order."""

    @property
    @abstractmethod
    def tree(self) -> pd.DataFrame:
        """Returns the module tree, of which `self_time_us` is what the table adds up per module."""

    @property
    @abstractmethod
    def amounts(self) -> Floats:
        """Returns what the table adds up, per row."""

    @cached_property
    def depth(self) -> Ids:
        """Returns how deep each row is nested."""
        return np.zeros(len(self.columns), np.int64)

    @abstractmethod
    def overview(self) -> Answer:
        """Returns what the header and the tool line show; small, as it is synced with the front end."""

    @abstractmethod
    def kinds(self) -> Mapping[str, Callable[[Message], Answer]]:
        """Returns the functions that answer the kinds of question that only this table knows."""

    def questions(self) -> Mapping[str, Callable[[Message], Answer]]:
        """Returns those that all tables know, and those of this one."""
        return {
            "rows": self._rows,
            "profile": self._profile,
            "position": self._position,
            "modules": self._modules,
            **self.kinds(),
        }

    def limit_to(self, ids: Ids | None) -> None:
        """Answer with these rows only from now on; None is all."""
        self.within = ids
        for cache in (self.listed, self.opened, self.totals):
            cache.cache_clear()

    def shown(self) -> Listing:
        """Returns what the query that was asked last lists."""
        return self.opened(self._shown)

    def groups(self) -> pd.DataFrame | None:
        """Returns the groups of the query that was asked last, as listed; null where its rows are not in groups."""
        listing = self.shown()
        if listing.groups is None:
            return None
        texts, numbers = listing.groups.columns.texts, listing.groups.columns.numbers
        data = {name: texts[name].column() if name in texts else numbers[name] for name in listing.names}
        return pd.DataFrame(data).astype({name: "int64" for name in COUNTS if name in data})

    def listing_of(self, message: Message) -> Listing:
        """Returns what the query of a message lists."""
        return self.opened(self._text_of(message))

    def known_row(self, message: Message) -> int:
        """Returns the row that a message asks for. Raises OptionError if there is none of that number."""
        row = int(message[self.key])
        if not 0 <= row < len(self.columns):
            raise OptionError(f"There is no {self.noun} {row}; the last one is {len(self.columns) - 1}.")
        return row

    def _rows(self, message: Message) -> Answer:
        is_whole = bool(message.get("is_whole"))
        listing, page = self.listing_of(message), page_of(message, FILE_ROWS if is_whole else PAGE_ROWS)
        self._shown = self._text_of(message)
        groups = listing.groups
        return {
            "matched": len(listing.matched),
            "listed": len(listing),
            "groups": None if groups is None else len(groups.first),
            **self.totals(_without_open(self._shown)),
            "columns": list(listing.names),
            "errors": dict(listing.errors),
            "offset": page.start,
            "rows": within_bytes(
                page_rows(self.columns, self.depth, listing, listing.ids[page]), FILE_BYTES if is_whole else PAGE_BYTES
            ),
        }

    def _totals(self, text: str) -> Answer:
        """Returns the sum over the rows of a query, and the largest value of the column that has bars."""
        listing = self.listed(text)
        ids = listing.matched
        # The order does not matter, and a million rows take a while to gather.
        rows = slice(None) if len(ids) == len(self.columns) else ids
        bars = listing.groups.columns.numbers.get(self.bar) if listing.groups else self.columns.number(self.bar)[rows]
        return {
            "amount": raw(np.nansum(self.amounts[rows])),
            "largest": 0.0 if bars is None else largest(bars),
        }

    def _profile(self, message: Message) -> Answer:
        listing = self.listing_of(message)
        groups = listing.groups
        columns, ids = (
            (self.columns, listing.matched) if groups is None else (groups.columns, np.arange(len(groups.first)))
        )
        profile = profiles(columns, ids, listing.names)
        for column in profile.values():
            if "top" in column:
                column["top"] = [[text[:CELL_CHARACTERS], count] for text, count in column["top"]]
        return {"matched": len(listing.matched), "columns": profile}

    def _position(self, message: Message) -> Answer:
        """Returns where a row stands in what a query lists, null where it does not; of a closed group its first row."""
        row, listing = self.known_row(message), self.listing_of(message)
        position, closed = listing.position(row), None
        if position is None and (grouping := grouping_of(self._query_of(message))):
            closed = listing.closed_around(row, keys_of(self.columns, grouping.by))
        return {self.key: row, "position": position, "closed": closed}

    def _modules(self, message: Message) -> Answer:
        """Returns a page of the module tree, what is outside any module, and what all rows add up to."""
        page = page_of(message, PAGE_MODULES)
        tree = self.tree.iloc[page]
        cells = [cells_in(tree[name]) for name in TREE_COLUMNS]
        is_outside = self.columns.texts["module"].codes < 0
        return {
            "offset": page.start,
            "total": len(self.tree),
            "rows": within_bytes([[*row[:2], raw(row[2]), *row[3:]] for row in zip(*cells, strict=True)]),
            "outside": [int(is_outside.sum()), raw(np.nansum(self.amounts[is_outside]))],
            "amount": raw(np.nansum(self.amounts)),
        }

    def _text_of(self, message: Message) -> str:
        return json.dumps(message.get("query", self.natural), sort_keys=True)

    def _query_of(self, message: Message) -> Query:
        return Query(**json.loads(self._text_of(message)))

    def _listed(self, text: str) -> Listing:
        query = Query(**json.loads(text))
        list_rows = groups_listed if query.group else rows_listed
        return list_rows(self.columns, query, self.shown_columns, self.within)

    def _opened(self, text: str) -> Listing:
        return opened(self.columns, Query(**json.loads(text)), self.listed(_without_open(text)))


def _without_open(text: str) -> str:
    """Returns the query with all groups closed: its groups are made once, whichever of them are open."""
    query = json.loads(text)
    if query.get("group"):
        query["group"] = {name: value for name, value in query["group"].items() if name != "open"}
    return json.dumps(query, sort_keys=True)


def largest(values: Floats) -> float:
    """Returns the largest finite value; 0 if there is none above."""
    return float(np.max(values, where=np.isfinite(values), initial=0.0))


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
