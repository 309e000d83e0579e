"""TableSource answers the questions of tables with pages of raw JSON data."""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from nbkit.analysis.query.encoded import Columns, Floats
from nbkit.analysis.query.matches import Ids, Matches, Query, matches
from nbkit.analysis.query.profile import profiles
from nbkit.errors import OptionError
from nbkit.trace.trace import Trace
from nbkit.views.tables.raw import CELL_CHARACTERS, raw, raw_rows

PAGE_BYTES = 48_000
PAGE_ROWS = 120
PAGE_MODULES = 400
TREE_COLUMNS = ("model", "module", "type", "depth", "has_children", "ops_below", "self_time_below_us")
Answer = dict[str, Any]
Message = Mapping[str, Any]


class TableSource(ABC):
    """Answers a table's questions about one trace; keeps the matches of the last few queries, as paging asks again."""

    table: ClassVar[str]
    # What a row is called, and the name of its number in messages.
    noun: ClassVar[str]
    key: ClassVar[str]
    # The column that has bars: all of one scale, up to the largest value shown.
    bar: ClassVar[str]
    # The query before anything is asked.
    natural: ClassVar[Mapping[str, Any]] = {}

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.matches = lru_cache(maxsize=4)(self._run_query)
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

    @property
    @abstractmethod
    def depth(self) -> Ids:
        """Returns how deep each row is nested."""

    @abstractmethod
    def overview(self) -> Answer:
        """Returns what the header and the tool line show; small, as it is synced with the front end."""

    @abstractmethod
    def kinds(self) -> Mapping[str, Callable[[Message], Answer]]:
        """Returns the functions that answer the kinds of question that only this table knows."""

    def answer(self, message: Message) -> Answer:
        """Answers one message of the front end, with its id; kind "error" where it asks for what is not there."""
        kinds = {
            "rows": self._rows,
            "profile": self._profile,
            "position": self._position,
            "modules": self._modules,
            **self.kinds(),
        }
        try:
            if message.get("kind") not in kinds:
                raise OptionError(f"The {self.table} knows no question {message.get('kind')!r}.")
            return {"kind": message["kind"], "id": message.get("id"), **kinds[message["kind"]](message)}
        # A front end that waits for an answer must get one, whatever went wrong.
        except Exception as error:
            return {"kind": "error", "id": message.get("id"), "message": f"{type(error).__name__}: {error}"}

    def limit_to(self, ids: Ids | None) -> None:
        """Answer with these rows only from now on; None is all."""
        self.within = ids
        self.matches.cache_clear()
        self.totals.cache_clear()

    def shown(self) -> Ids:
        """Returns the rows of the query that was asked last, in its order."""
        return self.matches(self._shown).ids

    def matches_of(self, message: Message) -> Matches:
        """Returns the rows that the query of a message asks for."""
        return self.matches(self._text_of(message))

    def known_row(self, message: Message) -> int:
        """Returns the row that a message asks for. Raises OptionError if there is none of that number."""
        row = int(message[self.key])
        if not 0 <= row < len(self.columns):
            raise OptionError(f"There is no {self.noun} {row}; the last one is {len(self.columns) - 1}.")
        return row

    def _rows(self, message: Message) -> Answer:
        matches, page = self.matches_of(message), page_of(message)
        self._shown = self._text_of(message)
        return {
            "matched": len(matches.ids),
            **self.totals(self._shown),
            "columns": self.shown_columns,
            "errors": dict(matches.errors),
            "offset": page.start,
            "rows": within_bytes(self._page(matches.ids[page])),
        }

    def _totals(self, text: str) -> Answer:
        """Returns the sum over the rows of a query, and the largest value of the column that has bars."""
        ids = self.matches(text).ids
        # The order does not matter, and a million rows take a while to gather.
        rows = slice(None) if len(ids) == len(self.columns) else ids
        return {
            "amount": raw(np.nansum(self.amounts[rows])),
            "largest": largest(self.columns.number(self.bar)[rows]),
        }

    def _page(self, ids: Ids) -> list[list[Any]]:
        """Returns for each row its number, how deep it is nested, and its raw cells."""
        rows = raw_rows(self.columns, ids, self.shown_columns)
        return [[row, depth, *cells] for (row, *cells), depth in zip(rows, self.depth[ids].tolist(), strict=True)]

    def _profile(self, message: Message) -> Answer:
        ids = self.matches_of(message).ids
        profile = profiles(self.columns, ids, self.shown_columns)
        for column in profile.values():
            if "top" in column:
                column["top"] = [[text[:CELL_CHARACTERS], count] for text, count in column["top"]]
        return {"matched": len(ids), "columns": profile}

    def _position(self, message: Message) -> Answer:
        """Returns where a row stands in the matches of a query; null where it is not among them."""
        row = self.known_row(message)
        positions = np.flatnonzero(self.matches_of(message).ids == row)
        return {self.key: row, "position": int(positions[0]) if len(positions) else None}

    def _modules(self, message: Message) -> Answer:
        """Returns a page of the module tree, what is outside any module, and what all rows add up to."""
        page = page_of(message, PAGE_MODULES)
        tree = self.tree.iloc[page]
        cells = [tree[name].astype(object).where(tree[name].notna(), None).tolist() for name in TREE_COLUMNS]
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

    def _run_query(self, text: str) -> Matches:
        return matches(self.columns, Query(**json.loads(text)), self.within)


def largest(values: Floats) -> float:
    """Returns the largest finite value; 0 if there is none above."""
    return float(np.max(values, where=np.isfinite(values), initial=0.0))


def page_of(message: Message, most: int = PAGE_ROWS) -> slice:
    """Returns the positions that a message asks for, no more than fit a page."""
    offset = max(int(message.get("offset", 0)), 0)
    return slice(offset, offset + min(int(message.get("limit", most)), most))


def within_bytes(page: list[list[Any]], limit_bytes: int = PAGE_BYTES) -> list[list[Any]]:
    """Returns the first rows whose JSON stays under the limit, at least one: the front end asks for the rest."""
    sizes = np.cumsum([len(json.dumps(row, ensure_ascii=False).encode()) + 1 for row in page], dtype=np.int64)
    return page[: max(int(np.searchsorted(sizes, limit_bytes, side="right")), 1)]
