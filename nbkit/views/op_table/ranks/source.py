"""RanksSource answers the op table's questions about the ops of all ranks of a job by SQL: no process holds them."""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from nbkit.analysis.query.encoded import encode_frame
from nbkit.analysis.query.groups import having
from nbkit.analysis.query.matches import Ids, Query
from nbkit.analysis.query.module_tree import tree_of
from nbkit.analysis.query.profile import SAMPLE, profiles
from nbkit.analysis.query.sql import before, kinds_of, order_by, where
from nbkit.errors import OptionError
from nbkit.schema import MODULES
from nbkit.step.decode import cells_in
from nbkit.trace.job.job import Job
from nbkit.views.op_table.ranks.detail import detail
from nbkit.views.op_table.ranks.groups import MOST_OPENED, RankGroups, Way, ways
from nbkit.views.summary.facts import facts
from nbkit.views.tables.answering import Answer, Answering, Message
from nbkit.views.tables.raw import CELL_CHARACTERS, raw
from nbkit.views.tables.source import (
    FILE_BYTES,
    FILE_ROWS,
    PAGE_BYTES,
    PAGE_MODULES,
    PAGE_ROWS,
    largest,
    page_of,
    within_bytes,
)

# Rows that a table lists at most; what it counts and sums is of all of them. So many places of rows are asked at once.
MOST_LISTED, CHUNK = 100_000, 1_000
# Ops of a job up to which all of them are looked through for what nobody has asked for, such as profiles.
FEW, MANY = 2_000_000, 20_000_000
ORDER = (
    "rank", "op_id", "op", "level", "self_time_us", "self_device_time_us", "model", "module", "phase", "status",
    "input_shapes", "own_source", "source", "total_time_us", "total_device_time_us", "start_us", "flops", "size_bytes",
    "group", "step", "device", "stream", "thread",
)  # fmt: skip
ALWAYS = ("rank", "op_id", "op", "level", "self_time_us", "module", "phase", "total_time_us", "start_us")
IS_TEXT = kinds_of("ops")
LOOKS = {"rank": ("rank", 96, "whole")}
HOST = "level IS DISTINCT FROM 'kernel'"  # work on a device runs beside the host and would count double
TREE = ("model", "module", "type", "depth", "has_children", "ops_below", "self_time_below_us")


class Totals(NamedTuple):
    """Holds how many ops fit a query, their self time on the host, and the largest; the last two NaN if not asked."""

    matched: int
    amount_us: float
    largest_us: float


class RanksSource(Answering):
    """Answers as `OpSource` does; a row's number is its op_id and the ops of all ranks before its own."""

    table = "op table"
    noun = "op"

    def __init__(self, job: Job) -> None:
        if not job.counts.get("ops"):
            raise OptionError("No rank of this job has ops, so there is no table of them.")
        self.trace = job
        self.count = job.counts["ops"]
        self.within: Ids | None = None
        self._shown: Message = {}
        self.counted = lru_cache(maxsize=16)(self._count)
        self.chunk = lru_cache(maxsize=16)(self._chunk)
        self.grouped = lru_cache(maxsize=16)(self._grouped)

    @cached_property
    def shown_columns(self) -> list[str]:
        """Returns the columns to show: without those that no op of a small job has."""
        more = [name for name in ORDER if name not in ALWAYS]
        if self.count > FEW:
            return [*ORDER]
        counted = ", ".join(f'count("{name}") > 0 AS "{name}"' for name in more)
        known = self.trace.sql(f"SELECT {counted} FROM ops")
        return [name for name in ORDER if name in ALWAYS or bool(known[name].iloc[0])]

    @cached_property
    def ways(self) -> dict[str, Way]:
        return ways(self.shown_columns)

    def overview(self) -> Answer:
        """Returns what the header and the tool line show."""
        known, job = facts(self.trace), self.trace
        first = next(iter(job.first_rows))
        levels = job.sql("SELECT DISTINCT level FROM ops WHERE rank = ? ORDER BY level", [first])["level"]
        notes = [f"Of sorted or filtered ops the table lists the first {MOST_LISTED:,}, of an open group the first "
                 f"{MOST_OPENED:,}; counts and sums are of all."] if self.count > MOST_OPENED else []  # fmt: skip
        if self.count > MANY:
            notes.append("The module tree is left out, as the job has very many ops; group by module instead.")
        return {
            "title": known.title,
            "incomplete": known.incomplete,
            "figures": [list(figure) for figure in known.figures],
            "phases": [],
            "counted": "ops",
            "notes": [*known.notes, *notes],
            "levels": levels.dropna().tolist(),
            "n_ops": self.count,
            "libraries": False,
            "group": "rank" if self.count <= MANY else "",
            "looks": {name: list(look) for name, look in LOOKS.items()},
            "ways": self.ways,
        }

    def questions(self) -> Mapping[str, Callable[[Message], Answer]]:
        return {
            "rows": self._rows,
            "profile": self._profile,
            "position": self._position,
            "modules": self._modules,
            "detail": lambda message: detail(self.trace, *self.place_of(int(message["op_id"])), int(message["op_id"])),
        }

    def place_of(self, row: int) -> tuple[int, int]:
        """Returns rank and op_id of a row. Raises OptionError if there is none of that number."""
        if not 0 <= row < self.count:
            raise OptionError(f"There is no op {row}; the last one is {self.count - 1}.")
        firsts = self.trace.first_rows
        rank = max(number for number, first in firsts.items() if first <= row)
        return rank, row - firsts[rank]

    def limit_to(self, ids: Ids | None) -> None:
        """Answer with these rows only from now on; None is all."""
        self.within = ids
        for cache in (self.counted, self.chunk, self.grouped):
            cache.cache_clear()

    @property
    def filtered(self) -> pd.DataFrame:
        """Returns the rows that are listed, with the column `rank`; of more than MOST_LISTED the first ones."""
        condition, values, _ = self._where(self._shown)
        order = f"ORDER BY {', '.join(terms)}" if (terms := self._order(self._shown)) else ""
        return self.trace.sql(f"SELECT * FROM ops WHERE {condition} {order} LIMIT {MOST_LISTED}", values)

    def groups(self) -> pd.DataFrame | None:
        """Returns the groups that are listed; null where rows are in no groups."""
        if not _query(self._shown).group:
            return None
        found = self.grouped(_without_open(self._shown))
        return found.frame[found.names]

    def _rows(self, message: Message) -> Answer:
        self._shown, is_whole = message, bool(message.get("is_whole"))
        page = page_of(message, FILE_ROWS if is_whole else PAGE_ROWS)
        limit_bytes = FILE_BYTES if is_whole else PAGE_BYTES
        if _query(message).group:
            return self._group_rows(message, page, limit_bytes)
        condition, values, errors = self._where(message)
        totals = self.counted(condition, tuple(values))
        listed = totals.matched if self._is_natural(message) else min(totals.matched, MOST_LISTED)
        cells = self.cells(self._places(message, slice(page.start, min(page.stop, listed))), self.shown_columns, 0)
        times = [row[2 + self.shown_columns.index("self_time_us")] for row in cells]
        shown_us = largest(np.array([time for time in times if isinstance(time, int | float)], float))
        return {
            "matched": totals.matched,
            "listed": listed,
            "groups": None,
            "amount": raw(totals.amount_us),
            "largest": shown_us if np.isnan(totals.largest_us) else largest(np.array([totals.largest_us])),
            "columns": self.shown_columns,
            "errors": errors,
            "offset": page.start,
            "rows": within_bytes(cells, limit_bytes),
        }

    def _group_rows(self, message: Message, page: slice, limit_bytes: int) -> Answer:
        found: RankGroups = self.grouped(_without_open(message))
        opened = {}
        for number in (_query(message).group or {}).get("open", ()):
            if (at := found.place(number)) is not None:
                opened[at] = self._opened(message, found, at)
        listing = found.listing(opened)[page]
        rows = self.cells([place for place in listing if isinstance(place, tuple)], found.names, 1)
        inside = iter(rows)
        cells = [next(inside) if isinstance(place, tuple) else found.cells(place) for place in listing]
        return {
            "matched": int(found.frame["calls"].sum()),
            "listed": len(found.frame) + sum(map(len, opened.values())),
            "groups": len(found.frame),
            "amount": raw(found.frame["amount_us"].sum()),
            "largest": largest(found.frame["self_time_us"].to_numpy(float, na_value=np.nan)),
            "columns": found.names,
            "errors": found.errors,
            "offset": page.start,
            "rows": within_bytes(cells, limit_bytes),
        }

    def _opened(self, message: Message, found: RankGroups, at: int) -> list[tuple[int, int]]:
        """Returns rank and op_id of the first rows of a group, in the order of the query as far as rows have it."""
        condition, values, _ = self._where(message, leave_out=found.names)
        own, keys = found.condition(at)
        sort = [part for part in _query(message).sort if part["column"] in IS_TEXT]
        order = [*order_by(sort, IS_TEXT), "rank", "op_id"]
        places = self.trace.sql(
            f"SELECT rank, op_id FROM ops WHERE {condition} AND {own} ORDER BY {', '.join(order)} LIMIT {MOST_OPENED}",
            [*values, *keys],
        )
        return list(zip(places["rank"].tolist(), places["op_id"].tolist(), strict=True))

    def cells(self, places: Sequence[tuple[int, int]], names: Sequence[str], depth: int) -> list[list[Any]]:
        """Returns the rows at these places: number, depth and cells, null where single rows do not have a column."""
        if not places:
            return []
        of_rank: dict[int, list[int]] = {}
        for rank, op_id in places:
            of_rank.setdefault(rank, []).append(op_id)
        columns = [name for name in dict.fromkeys([*names, "op_id"]) if name in IS_TEXT]
        found = self.trace.database.rows_at("ops", of_rank, columns)
        keys = zip(found["rank"].tolist(), found["op_id"].tolist(), strict=True)
        cells = dict(zip(keys, zip(*(cells_in(found[name]) for name in columns), strict=True), strict=True))
        at = {name: columns.index(name) for name in names if name in columns}
        firsts = self.trace.first_rows
        return [
            [
                firsts[rank] + op_id,
                depth,
                *(raw(cells[rank, op_id][at[name]]) if name in at else None for name in names),
            ]
            for rank, op_id in places
        ]

    def _places(self, message: Message, page: slice) -> list[tuple[int, int]]:
        """Returns rank and op_id of the rows that stand at these positions."""
        if self._is_natural(message):
            return [self.place_of(row) for row in range(page.start, page.stop)]
        condition, values, _ = self._where(message)
        order = tuple(self._order(message))
        places: list[tuple[int, int]] = []
        for start in range(page.start // CHUNK * CHUNK, page.stop, CHUNK):
            places += self.chunk(condition, tuple(values), order, start)
        skipped = page.start % CHUNK
        return places[skipped : skipped + page.stop - page.start]

    def _chunk(
        self, condition: str, values: tuple[Any, ...], order: tuple[str, ...], start: int
    ) -> list[tuple[int, int]]:
        """Returns the places of CHUNK rows; without an order they come as they lie, by rank and op_id."""
        terms = f"ORDER BY {', '.join([*order, 'rank', 'op_id'])}" if order else ""
        found = self.trace.sql(
            f"SELECT rank, op_id FROM ops WHERE {condition} {terms} LIMIT {CHUNK} OFFSET {start}", values
        )
        return list(zip(found["rank"].tolist(), found["op_id"].tolist(), strict=True))

    def _count(self, condition: str, values: tuple[Any, ...]) -> Totals:
        """Counts and sums what fits; of all ops of a large job the number alone, which is known."""
        if condition == "true" and self.count > MANY:
            return Totals(self.count, np.nan, np.nan)
        found = self.trace.sql(
            f"SELECT count(*) AS matched, sum(self_time_us) FILTER (WHERE {HOST}) AS amount, max(self_time_us) AS most "
            f"FROM ops WHERE {condition}",
            values,
        ).iloc[0]
        return Totals(int(found["matched"]), float(found["amount"]), float(found["most"]))

    def _grouped(self, text: str) -> RankGroups:
        message = {"query": json.loads(text)}
        query = _query(message)
        names = RankGroups.names_of(query, self.shown_columns)
        condition, values, errors = self._where(message, leave_out=names)
        of_groups = [one for one in query.predicates if having([n for n in names if not IS_TEXT.get(n)], one)]
        is_small = self.count <= MANY
        return RankGroups.of(self.trace, query, names, (condition, values, errors), of_groups, is_small=is_small)

    def _profile(self, message: Message) -> Answer:
        """Returns the profiles of the columns, over a sample of the ops; none of a job with very many."""
        if _query(message).group:
            found = self.grouped(_without_open(message))
            columns, names, matched = encode_frame(found.frame), found.names, int(found.frame["calls"].sum())
        elif self.count > MANY:
            return {"matched": self.count, "columns": {}}
        else:
            condition, values, _ = self._where(message)
            names, matched = self.shown_columns, self.counted(condition, tuple(values)).matched
            listed = ", ".join(f'"{name}"' for name in names)
            columns = encode_frame(self.trace.sql(
                f"SELECT {listed} FROM (SELECT {listed} FROM ops WHERE {condition}) "
                f"USING SAMPLE reservoir({SAMPLE} ROWS) REPEATABLE (0)", values,
            ))  # fmt: skip
        profile = profiles(columns, np.arange(len(columns)), names)
        for column in profile.values():
            if "top" in column:
                column["top"] = [[text[:CELL_CHARACTERS], count] for text, count in column["top"]]
        return {"matched": matched, "columns": profile}

    def _position(self, message: Message) -> Answer:
        """Returns where a row stands, null where a filter leaves it out; of a row in a group, which group that is."""
        row, query = int(message["op_id"]), _query(message)
        rank, op_id = self.place_of(row)
        none = {"op_id": row, "position": None, "closed": None}
        if self._is_natural(message):
            return {**none, "position": row}
        names = RankGroups.names_of(query, self.shown_columns) if query.group else []
        condition, values, _ = self._where(message, leave_out=names)
        one = self.trace.sql(f"SELECT * FROM ops WHERE rank = {rank} AND op_id = {op_id} AND {condition}", values)
        if one.empty:
            return none
        if query.group:
            return {**none, **self.grouped(_without_open(message)).found(one, self._inside(message), (rank, op_id))}
        position = self._before(message, one.iloc[0])
        return {**none, "position": position if position < MOST_LISTED else None}

    def _before(self, message: Message, row: "pd.Series[Any]") -> int:
        """Counts the rows that stand before one of those that fit a query."""
        condition, values, _ = self._where(message)
        sort = [] if _is_call_order(_query(message).sort) else _query(message).sort
        parts = [*sort, {"column": "rank"}, {"column": "op_id"}]
        is_before, asked = before(parts, {part["column"]: cells_in(row[[part["column"]]])[0] for part in parts})
        count = f"SELECT count(*) AS count FROM ops WHERE {condition} AND ({is_before})"
        return int(self.trace.sql(count, [*values, *asked])["count"].iloc[0])

    def _inside(self, message: Message) -> Callable[[RankGroups, int], list[tuple[int, int]]]:
        return lambda found, at: self._opened(message, found, at)

    def _modules(self, message: Message) -> Answer:
        """Returns a page of the module tree, what is outside any module, and what all ops add up to."""
        page, tree = page_of(message, PAGE_MODULES), self._tree
        cells = [cells_in(tree[0][page][name]) for name in TREE]
        rows = [[*row[:2], raw(row[2]), *row[3:]] for row in zip(*cells, strict=True)]
        return {
            "offset": page.start,
            "total": len(tree[0]),
            "rows": within_bytes(rows) if rows else [],
            "outside": tree[1],
            "amount": raw(tree[2]),
        }

    @cached_property
    def _tree(self) -> tuple[pd.DataFrame, list[Any], float]:
        if self.count > MANY:
            return tree_of({}, MODULES.frame()), [0, None], np.nan
        totals = self.trace.sql(
            f"SELECT model, module, count(*) AS ops, coalesce(sum(self_time_us) FILTER (WHERE {HOST}), 0) AS us "
            "FROM ops GROUP BY ALL ORDER BY min(op_id)"
        )
        is_inside = totals["module"].notna()
        inside, outside = totals[is_inside], totals[~is_inside]
        models = inside["model"].where(inside["model"].notna(), "")
        pairs = zip(inside["ops"].tolist(), inside["us"].tolist(), strict=True)
        own = dict(zip(zip(models, inside["module"], strict=True), pairs, strict=True))
        modules = self._modules_frame()
        return tree_of(own, modules), [int(outside["ops"].sum()), raw(outside["us"].sum())], float(totals["us"].sum())

    def _modules_frame(self) -> pd.DataFrame:
        """Returns the modules of the first rank that has some: their order and their classes."""
        files = self.trace.files.get("modules")
        if not files:
            return MODULES.frame()
        found = self.trace.sql("SELECT * EXCLUDE (rank) FROM modules WHERE rank = ?", [next(iter(files))])
        return MODULES.frame({str(name): found[name].tolist() for name in found})

    def _where(self, message: Message, leave_out: Sequence[str] = ()) -> tuple[str, list[Any], dict[str, str]]:
        """Returns the condition of a query, without its predicates on numbers of groups, of which these are columns."""
        numbers = [name for name in leave_out if not IS_TEXT.get(name)]
        predicates = [one for one in _query(message).predicates if not (numbers and having(numbers, one))]
        found = where(predicates, IS_TEXT)
        if self.within is None:
            return found.text, found.values, found.errors
        of_rank: dict[int, list[int]] = {}
        for row in self.within.tolist():
            rank, op_id = self.place_of(row)
            of_rank.setdefault(rank, []).append(op_id)
        parts = [f"(rank = {rank} AND op_id IN ({', '.join(map(str, ids))}))" for rank, ids in of_rank.items()]
        return f"{found.text} AND ({' OR '.join(parts) or 'false'})", found.values, found.errors

    def _order(self, message: Message) -> list[str]:
        """Returns the terms that sort; none for the order of the files, by rank and op_id."""
        sort = _query(message).sort
        return [] if _is_call_order(sort) else order_by(sort, IS_TEXT)

    def _is_natural(self, message: Message) -> bool:
        query = _query(message)
        return not query.predicates and not query.group and self.within is None and _is_call_order(query.sort)


def _is_call_order(sort: Sequence[Mapping[str, Any]]) -> bool:
    names = [part["column"] for part in sort]
    return names in ([], ["op_id"], ["rank"], ["rank", "op_id"]) and not any(part.get("descending") for part in sort)


def _query(message: Message) -> Query:
    return Query(**message.get("query", {}))


def _without_open(message: Message) -> str:
    """Returns the query with all groups closed, as text."""
    query = dict(message.get("query", {}))
    query["group"] = {name: value for name, value in query["group"].items() if name != "open"}
    return json.dumps(query, sort_keys=True)
