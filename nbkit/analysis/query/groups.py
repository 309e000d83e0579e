"""Groups the rows of a table by columns of texts: of each group sums, spread and what its rows have in common.

widgets/src/report/execute/groups.js does the same in a report; tests/views/report/questions.py asks both.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from nbkit.analysis.query.encoded import Codes, Columns, Floats, TextColumn
from nbkit.analysis.query.matches import Ids, order_of_all, ordered, stable_order
from nbkit.analysis.query.predicates import Predicate, mask_of
from nbkit.errors import OptionError, nearest
from nbkit.schema import TEXT

# Texts up to which a group lists them; of more it says how many.
LISTED = 3
# Pairs of group and text up to which a flag for each is quicker than sorting them.
FLAGS = 1 << 23
# What a group has besides the columns of its rows: how many of them there are here and among all, how many instances
# they belong to, and the least, middle and most of an instance.
CALLS, OF, INSTANCES = COUNTS = ("calls", "of", "instances")
SPREAD = ("min", "median", "max")
TOTALS: dict[str, np.ufunc] = {"sum": np.add, "min": np.fmin, "max": np.fmax}
# Further totals: the sum without rows that a row of the group called; and median, IQR and least of the sums of runs,
# which are the columns that begin with RUN.
OUTER, MIDDLE, IQR, LEAST = MORE = ("outer", "middle", "iqr", "least")
RUN, PARENT = "run_", "parent_id"
# Up to so many groups their numbers are 16 bits, which numpy sorts in linear time.
FEW = 2**16


@dataclass(frozen=True)
class Grouping:
    """Says how to group: rows with equal texts in the columns `by` are one group.

    `totals` says of columns of numbers whether a group has their "sum", "min", "max" or one of MORE; of them `only` are
    columns that single rows are shown without. `spread` is the column of which it has min, median and max over its
    rows, or, with `each`, over the sums of the rows that are equal in those columns (such as each layer). `among` are
    the columns by which all rows of the table are counted, filtered or not.
    """

    by: Sequence[str]
    totals: Mapping[str, str]
    spread: str | None = None
    each: Sequence[str] = ()
    among: Sequence[str] = ()
    only: Sequence[str] = ()


@dataclass(frozen=True)
class Groups:
    """Holds groups in order: their columns, of each its first row in the table; and of each row its group.

    `rows` are the rows that fit the query, in the order of the table, and `group_of` says the group of each.
    """

    columns: Columns
    first: Ids
    rows: Ids
    group_of: Ids

    def places(self, first: Ids) -> Ids:
        """Returns where the groups of these first rows stand."""
        order = np.argsort(self.first)
        return np.asarray(order[np.searchsorted(self.first[order], first)])

    def with_key(self, key: int, keys: Ids) -> int | None:
        """Returns the group whose rows have this key; null where a filter leaves out all of them."""
        places = np.flatnonzero(keys[self.first] == key)
        return int(places[0]) if len(places) else None

    def listing(self, opened: Mapping[int, Ids]) -> Ids:
        """Returns what a table lists: a group as -1 less its first row, after it its rows if they are in `opened`."""
        heads = -1 - self.first
        parts, before = list[Ids](), 0
        for place in sorted(opened):
            parts += [heads[before : place + 1], opened[place]]
            before = place + 1
        return np.concatenate([*parts, heads[before:]])


def columns_of(shown: Sequence[str], columns: Columns, grouping: Grouping) -> list[str]:
    """Returns the columns that groups are shown with: what they go by, numbers, then what rows have in common."""
    by = [name for index, name in enumerate(grouping.by) if index == 0 or name in shown]
    numbers = [name for name in shown if name in grouping.totals]
    counts = [CALLS, *([OF] if grouping.among else []), *([INSTANCES] if grouping.each else [])]
    at = numbers.index(grouping.spread) + 1 if grouping.spread in numbers else 0
    spread = SPREAD if grouping.spread else ()
    only = [name for name in grouping.only if name in columns.numbers]
    texts = [name for name in shown if name in columns.texts and name not in by]
    return [*by, *counts, *numbers[:at], *only, *numbers[at:], *spread, *texts]


def having(numbers: Sequence[str], predicate: Predicate) -> bool:
    """Tells whether a predicate is about these numbers of groups: it leaves out groups then, as their columns show."""
    parts = predicate.get("any", predicate.get("all"))
    if parts is not None:
        return bool(parts) and all(having(numbers, part) for part in parts)
    return predicate["column"] in numbers


def keys_of(columns: Columns, names: Sequence[str]) -> Ids:
    """Returns a number for each row, equal where the texts in these columns are. Raises OptionError on others."""
    keys = np.zeros(len(columns), np.int64)
    for name in names:
        if name not in columns.texts:
            raise OptionError(f"The table has no texts {name!r} to group by; {nearest(name, list(columns.texts))}")
        column = columns.texts[name]
        keys = keys * (len(column.values) + 1) + column.codes + 1
        if len(column.values) and keys.max(initial=0) >= 2**62 // (len(column.values) + 1):
            keys = pd.factorize(keys)[0].astype(np.int64)
    return keys


def groups_of(
    columns: Columns,
    rows: Ids,
    grouping: Grouping,
    names: Sequence[str],
    sort: Sequence[Mapping[str, Any]] = (),
    predicates: Sequence[Predicate] = (),
) -> Groups:
    """Groups these rows, given in the order of the table; `names` are the columns that the groups need.

    Groups come in the order of `sort` as far as they have its columns, else in that of their first rows. Those that do
    not fit the `predicates` are left out, with their rows.
    """
    keys = keys_of(columns, grouping.by)
    codes, different = pd.factorize(keys[rows] if len(rows) < len(keys) else keys)
    parts = _Parts(columns, rows, np.asarray(codes, np.int64), len(different))
    made = parts.columns(grouping, names)
    # The codes count groups up as their first rows come.
    first = np.empty(len(different), np.int64)
    first[parts.codes[::-1]] = rows[::-1]
    fits = mask_of(made, predicates)[0]
    place = np.flatnonzero(fits)
    for part in reversed(sort):
        if part["column"] in made.texts or part["column"] in made.numbers:
            place = ordered(made, place, part["column"], is_descending=bool(part.get("descending")))
    texts = {name: TextColumn(column.values, column.codes[place]) for name, column in made.texts.items()}
    numbers = {name: values[place] for name, values in made.numbers.items()}
    place_of = np.empty(len(fits), np.int64)
    place_of[place] = np.arange(len(place))
    kept = fits[parts.codes]
    return Groups(Columns(len(place), texts, numbers), first[place], rows[kept], place_of[parts.codes[kept]])


@dataclass(frozen=True)
class _Parts:
    """Holds rows with the group of each."""

    table: Columns
    rows: Ids
    codes: Ids
    count: int

    def of(self, values: Any) -> Any:
        """Returns the values of the rows, of a column of the table."""
        return values if len(self.rows) == len(self.table) else values[self.rows]

    def columns(self, grouping: Grouping, names: Sequence[str]) -> Columns:
        numbers = {CALLS: np.bincount(self.codes, minlength=self.count).astype(np.float64)}
        numbers |= {name: self.total(name, how) for name, how in grouping.totals.items() if name in names}
        if grouping.among:
            numbers[OF] = self.among(grouping.among)
        if grouping.spread:
            numbers |= self.spread(grouping.spread, grouping.each)
        known = self.table.texts
        texts = {
            name: common_texts(known[name].values, self.of(known[name].codes), self.codes, self.count)
            for name in names
            if name in known
        }
        return Columns(self.count, texts, numbers)

    def total(self, name: str, how: str) -> Floats:
        """Returns sum, least or most of a column; NaN where no row has a number."""
        if how not in (*TOTALS, *MORE):
            raise OptionError(f"Groups know no {how!r} of {name}; {nearest(how, [*TOTALS, *MORE])}")
        if how in (MIDDLE, IQR, LEAST):
            return over_runs([self.total(run, "sum") for run in self.table.numbers if run.startswith(RUN)], how)
        values = self.of(self.table.number(name))
        is_known = ~np.isnan(values)
        if how == OUTER:
            is_known &= ~self.is_inner()
        if how in ("sum", OUTER):
            sums = np.bincount(self.codes, np.where(is_known, values, 0.0), self.count)
            return np.where(np.bincount(self.codes, is_known, self.count) > 0, sums, np.nan)
        totals = np.full(self.count, np.nan)
        TOTALS[how].at(totals, self.codes[is_known], values[is_known])
        return totals

    def is_inner(self) -> npt.NDArray[np.bool_]:
        """Tells which rows a row of their own group called, at whatever depth."""
        parent = self.table.number(PARENT)
        above = np.append(np.where(np.isnan(parent), -1, parent).astype(np.int64), -1)
        group = np.full(len(above), -1, np.int64)
        group[self.rows] = self.codes
        inner = np.zeros(len(self.rows), bool)
        at, caller = np.arange(len(self.rows)), above[self.rows]
        while len(at):
            inner[at] |= group[caller] == self.codes[at]
            goes_on = ~inner[at] & (caller >= 0)
            at, caller = at[goes_on], above[caller[goes_on]]
        return inner

    def among(self, names: Sequence[str]) -> Floats:
        """Counts all rows of the table with the texts of a group in these columns."""
        keys = pd.factorize(keys_of(self.table, names))[0]
        counts = np.empty(self.count)
        counts[self.codes] = np.bincount(keys, minlength=1)[self.of(keys)]
        return counts

    def spread(self, name: str, each: Sequence[str]) -> dict[str, Floats]:
        """Returns min, median and max over the rows of a group, or over the instances that `each` tells apart."""
        if not each:
            order = self.by_value(name)
            return _spread(self.of(self.table.number(name))[order], self.codes[order], self.count)
        values = self.of(self.table.number(name))
        is_known = ~np.isnan(values)
        keys = self.of(keys_of(self.table, each))[is_known]
        sums, groups = self._sums(values[is_known], self.codes[is_known], keys)
        order = stable_order(sums)
        instances = {INSTANCES: np.bincount(groups, minlength=self.count).astype(np.float64)}
        return {**_spread(sums[order], groups[order], self.count), **instances}

    def by_value(self, name: str) -> Ids:
        """Returns the places of the rows with a number, the smallest first."""
        values = self.table.number(name)
        if len(self.rows) == len(self.table):
            order = order_of_all(self.table, name)
            return order[: np.count_nonzero(~np.isnan(values))]
        known = np.flatnonzero(~np.isnan(values[self.rows]))
        return known[stable_order(values[self.rows][known])]

    def _sums(self, values: Floats, groups: Ids, keys: Ids) -> tuple[Floats, Ids]:
        """Returns the sum of each instance in each group, and its group."""
        codes, different = pd.factorize(keys)
        units, pairs = pd.factorize(groups * max(len(different), 1) + codes)
        sums = np.bincount(units, values, len(pairs)).astype(np.float64)
        return sums, np.asarray(pairs // max(len(different), 1), np.int64)


def over_runs(runs: Sequence[Floats], how: str) -> Floats:
    """Returns median, IQR or least of a time over the runs that have it; NaN where none has."""
    times = np.sort(np.stack(runs), axis=0)
    counts = np.count_nonzero(~np.isnan(times), axis=0)
    if how == LEAST:
        return np.asarray(times[0])
    if how == MIDDLE:
        return _quantile(times, counts, 0.5)
    low, high = (_quantile(times, counts, part) for part in (0.25, 0.75))
    return high - low


def _quantile(times: Floats, counts: Ids, part: float) -> Floats:
    at = np.maximum(counts - 1, 0) * part
    below = np.floor(at).astype(np.int64)
    last = np.maximum(counts - 1, 0)
    lower, upper = (np.take_along_axis(times, np.minimum(place, last)[None], 0)[0] for place in (below, below + 1))
    return np.asarray(lower + (upper - lower) * (at - below))


def _spread(values: Floats, groups: Ids, count: int) -> dict[str, Floats]:
    """Returns min, median and max of each group; `values` are in order."""
    order = np.argsort(groups.astype(np.uint16 if count < FEW else np.int64), kind="stable")
    counts = np.bincount(groups, minlength=count)
    starts = np.cumsum(counts) - counts
    none = len(values)
    at = [starts, starts + (counts - 1) // 2, starts + counts // 2, starts + counts - 1]
    places = np.append(order, none)
    ranked = np.append(values, np.nan)
    low, below, above, high = (ranked[places[np.where(counts > 0, place, none)]] for place in at)
    with np.errstate(invalid="ignore"):
        # The middle of two equal infinite values is that value.
        middle = np.where(below == above, below, below / 2 + above / 2)
    return dict(zip(SPREAD, (low, middle, high), strict=True))


def common_texts(values: pd.Series, codes: Codes, groups: Ids, count: int) -> TextColumn:
    """Returns a text per group: that of all its rows, up to three of them, or how many differ; missing ones aside.

    `values` are the texts, `codes` and `groups` say of each row its text and its group.
    """
    none = len(values)
    pairs = _pairs(groups, codes, count, none)
    group, code = pairs // (none + 1), pairs % (none + 1)
    differ = np.bincount(group, minlength=count)
    at = np.cumsum(differ) - differ
    common = np.full(count, -1, np.intp)
    common[differ == 1] = code[at[differ == 1]]
    texts = values.tolist()
    made: dict[str, int] = {}
    for index in np.flatnonzero(differ > 1).tolist():
        number = int(differ[index])
        listed = code[at[index] : at[index] + number] if number <= LISTED else ()
        text = ", ".join(str(texts[one]) for one in listed) or f"{number:,} different"
        common[index] = none + made.setdefault(text, len(made))
    return TextColumn(pd.Series([*texts, *made], dtype=TEXT), common)


def _pairs(groups: Ids, codes: Codes, count: int, none: int) -> Ids:
    """Returns each pair of a group and a text once, in order, as one number; a missing text is number `none`."""
    pairs = groups * (none + 1) + np.where(codes < 0, none, codes)
    if count * (none + 1) > FLAGS:
        pairs = np.unique(pairs)
    else:
        is_there = np.zeros(count * (none + 1), bool)
        is_there[pairs] = True
        pairs = np.flatnonzero(is_there)
    known: Ids = pairs[pairs % (none + 1) != none]
    return known
