"""TableSource: what the tables that are paged from the kernel have in common: questions in, pages of JSON data out."""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from nbkit.analysis.query.op_table import Matches
from nbkit.errors import OptionError
from nbkit.trace.trace import Trace

PAGE_BYTES = 48_000
PAGE_ROWS = 120
PAGE_MODULES = 400
Answer = dict[str, Any]
Message = Mapping[str, Any]


class TableSource(ABC):
    """Answers a table's questions about one trace; the matches of the last few queries are kept: paging is free."""

    table: ClassVar[str]

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.matches = lru_cache(maxsize=4)(self._run_query)

    @abstractmethod
    def overview(self) -> Answer:
        """What the header and the tool line show; small, as it is synced with the front end."""

    @abstractmethod
    def kinds(self) -> Mapping[str, Callable[[Message], Answer]]:
        """What answers each kind of question."""

    @abstractmethod
    def _run_query(self, text: str) -> Matches: ...

    def answer(self, message: Message) -> Answer:
        """The answer to one message of the front end, with its id; kind "error" where it asks for what is not there."""
        kinds = self.kinds()
        try:
            if message.get("kind") not in kinds:
                raise OptionError(f"The {self.table} knows no question {message.get('kind')!r}.")
            return {"kind": message["kind"], "id": message.get("id"), **kinds[message["kind"]](message)}
        # A front end that waits for an answer must get one, whatever went wrong.
        except Exception as error:
            return {"kind": "error", "id": message.get("id"), "message": f"{type(error).__name__}: {error}"}

    def matches_of(self, message: Message) -> Matches:
        """The rows that the query of a message asks for."""
        return self.matches(json.dumps(message.get("query", {}), sort_keys=True))

    def position_of(self, place: int, message: Message) -> int | None:
        """Where a row stands in the matches of a query; None if it is not among them."""
        found = np.flatnonzero(self.matches_of(message).ids == place)
        return int(found[0]) if len(found) else None


def page_of(message: Message, most: int = PAGE_ROWS) -> slice:
    """The places that a message asks for, no more than fit a page."""
    offset = max(int(message.get("offset", 0)), 0)
    return slice(offset, offset + min(int(message.get("limit", most)), most))


def within_bytes(page: list[list[Any]], limit_bytes: int = PAGE_BYTES) -> list[list[Any]]:
    """The first rows whose JSON stays under the limit, but at least one: the front end asks again for the rest."""
    sizes = np.cumsum([len(json.dumps(row, ensure_ascii=False).encode()) + 1 for row in page], dtype=np.int64)
    return page[: max(int(np.searchsorted(sizes, limit_bytes, side="right")), 1)]
