"""RankGroups holds the groups of a job's ops: DuckDB sums them over all ranks, and they are few enough to be held."""

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from nbkit.analysis.query.groups import CALLS
from nbkit.analysis.query.matches import Query
from nbkit.analysis.query.predicates import Predicate
from nbkit.analysis.query.sql import order_by, where
from nbkit.errors import OptionError, nearest
from nbkit.schema import OPS
from nbkit.step.decode import cells_in
from nbkit.trace.job.job import Job
from nbkit.units import is_null
from nbkit.views.tables.raw import raw

Way = dict[str, Any]
Place = tuple[int, int]
MOST_OPENED = 1_000  # rows of a group that is open
MOST_GROUPS = 100_000
# What rows of an open group are told apart by; a group has it where all its rows agree.
SHARED, SEVERAL = ("op", "module", "phase", "source"), "several"
SUMMED = ("self_time_us", "self_device_time_us", "flops", "size_bytes")
KEYS = ("rank", *(column.name for column in OPS.columns if column.dtype == "str"))
BY = {
    "rank": ("rank", ["rank"]),
    "op": ("op", ["op"]),
    "shape": ("op + shape", ["op", "input_shapes"]),
    "module": ("module", ["module", "model"]),
    "rank_module": ("rank + module", ["rank", "module", "model"]),
    "collective": ("process group", ["group", "op", "rank"]),
    "source": ("source line", ["source"]),
}


def ways(shown: Sequence[str]) -> dict[str, Way]:
    """Returns the ways to group the ops of ranks, as far as their columns are shown; the most time comes first."""
    totals = {name: "sum" for name in SUMMED if name in shown}
    sort = [{"column": "self_time_us", "descending": True}]
    return {
        name: {"label": label, "sort": sort, "group": {"by": by, "totals": totals}}
        for name, (label, by) in BY.items()
        if all(name in shown or name == "model" for name in by)
    }


@dataclass(frozen=True)
class RankGroups:
    """Holds groups in order: their keys `by`, calls and sums; `names` are the columns to show.

    A group's number is made of its keys, so that it stays open whatever the filters leave out.
    """

    by: Sequence[str]
    names: list[str]
    frame: pd.DataFrame
    errors: dict[str, str]

    @staticmethod
    def names_of(query: Query, shown: Sequence[str]) -> list[str]:
        """Returns the columns of the groups of a query. Raises OptionError on one that groups cannot go by."""
        group = query.group or {}
        if unknown := [name for name in group["by"] if name not in KEYS]:
            raise OptionError(f"The table has no texts {unknown[0]!r} to group by; {nearest(unknown[0], KEYS)}")
        by = [name for index, name in enumerate(group["by"]) if index == 0 or name in shown]
        shared = [name for name in SHARED if name in shown and name not in group["by"]]
        return [*by, CALLS, *(name for name in SUMMED if name in group.get("totals", {})), *shared]

    @classmethod
    def of(
        cls,
        job: Job,
        query: Query,
        names: list[str],
        condition: tuple[str, Sequence[Any], dict[str, str]],
        predicates: Sequence[Predicate],
        *,
        is_small: bool,
    ) -> "RankGroups":
        """Asks for the groups that fit `predicates`, of the rows that fit `condition`; ordered as the query says.

        Only of a job that `is_small` each group has the texts that all its rows have.
        """
        by = list((query.group or {})["by"])
        text, values, errors = condition
        is_text = {name: name in KEYS and name != "rank" for name in dict.fromkeys([*by, *names])}
        keys = ", ".join(f'"{name}"' for name in by)
        shared = "".join(f", {_common(name, is_small)}" for name in names if name in SHARED and name not in by)
        sums = ", ".join(f'sum("{name}") AS "{name}"' for name in SUMMED if name in {*names, SUMMED[0]})
        wanted = where(predicates, is_text)
        order = [*order_by([part for part in query.sort if part["column"] in is_text], is_text), keys]
        amount = "coalesce(sum(self_time_us) FILTER (WHERE level IS DISTINCT FROM 'kernel'), 0) AS amount_us"
        frame = job.sql(
            f"SELECT * FROM (SELECT {keys}, count(*) AS {CALLS}, {sums}, {amount}{shared} FROM ops WHERE {text} "
            f"GROUP BY {keys}) WHERE {wanted.text} "
            f"ORDER BY {', '.join(order)} LIMIT {MOST_GROUPS}",
            [*values, *wanted.values],
        )
        return cls(by, names, frame, errors)

    @property
    def numbers(self) -> list[int]:
        """Returns a number for each group."""
        rows = zip(*(cells_in(self.frame[name]) for name in self.by), strict=True)
        return [_number(row) for row in rows]

    def place(self, number: int) -> int | None:
        """Returns where the group of this number stands; null where a filter leaves it out."""
        numbers = self.numbers
        return numbers.index(number) if number in numbers else None

    def condition(self, at: int) -> tuple[str, list[Any]]:
        """Returns the condition that rows of a group fit, and what its question marks stand for."""
        keys = [None if is_null(value) else value for value in self._keys(at)]
        return " AND ".join(f'"{name}" IS NOT DISTINCT FROM ?' for name in self.by), keys

    def _keys(self, at: int) -> list[Any]:
        return [cells_in(self.frame[name].iloc[at : at + 1])[0] for name in self.by]

    def listing(self, opened: Mapping[int, Sequence[Place]]) -> "list[int | Place]":
        """Returns what a table lists: the place of a group, after it the rows of one that is open."""
        listed: list[int | Place] = []
        for at in range(len(self.frame)):
            listed += [at, *opened.get(at, ())]
        return listed

    def cells(self, at: int) -> list[Any]:
        """Returns the row of a group: its number below 0, depth 0, and its cells."""
        row = self.frame.iloc[at : at + 1]
        cells = [raw(cells_in(row[name])[0]) for name in self.names]
        return [-1 - _number(self._keys(at)), 0, *cells]

    def found(
        self, one: pd.DataFrame, inside: "Callable[[RankGroups, int], list[Place]]", place: Place
    ) -> dict[str, int | None]:
        """Returns the number of the closed group that holds this one row of ops, empty where a filter leaves it out."""
        at = self.place(_number([cells_in(one[name])[0] for name in self.by]))
        return {} if at is None or place not in inside(self, at) else {"closed": self.numbers[at]}


def _common(name: str, is_small: bool) -> str:
    """Returns the text that all rows of a group have as SQL; an empty one where that is not asked."""
    if not is_small:
        return f"'' AS \"{name}\""
    least, most = f'min("{name}")', f'max("{name}")'
    return f"CASE WHEN {least} = {most} THEN {least} WHEN {least} IS NOT NULL THEN '{SEVERAL}' END AS \"{name}\""


def _number(keys: Sequence[Any]) -> int:
    texts = [None if is_null(key) else str(int(key)) if isinstance(key, np.integer) else str(key) for key in keys]
    return zlib.crc32(repr(texts).encode("utf-8", "backslashreplace"))
