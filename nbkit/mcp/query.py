"""Query answers which rows of a frame fit: the filters of nbkit's tables, and nothing that could run or write."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from nbkit.analysis.query.encoded import encode_frame
from nbkit.analysis.query.matches import Query, matches
from nbkit.errors import OptionError, nearest
from nbkit.mcp.arguments import check_kind
from nbkit.schema import TABLES

MOST_PREDICATES, DEEPEST, LONGEST_PATTERN = 100, 5, 1000
PARTS = ("column", "op", "value", "not", "ignore_case")


def fitting_rows(frame: pd.DataFrame, where: Sequence[Any], sort: Sequence[Any]) -> pd.DataFrame:
    """Returns the rows that fit all predicates, in order. Raises OptionError on what the filters do not know."""
    columns = encode_frame(frame)
    query = checked_query(where, sort, {str(name): name in columns.texts for name in frame})
    return frame.iloc[matches(columns, query).ids]


def checked_query(where: Sequence[Any], sort: Sequence[Any], columns: Mapping[str, bool]) -> Query:
    """Returns the query; `columns` says whether each holds texts. Raises OptionError on what filters do not know."""
    _check(where)
    for predicate in _single(where):
        name = predicate["column"]
        if name not in columns:
            raise OptionError(f"There is no column {name!r}; {nearest(name, columns)}")
        _check_value(predicate, is_text=columns[name])
    return Query(where, [_sort(part, columns) for part in sort])


def column_meanings(name: str, frame: pd.DataFrame) -> dict[str, str]:
    """Returns what each column of a frame means, with its unit."""
    known = {column.name: column.meaning for column in TABLES[name].columns} if name in TABLES else {}
    return {str(column): known.get(str(column), "") for column in frame}


def _sort(part: Any, columns: Mapping[str, bool]) -> dict[str, Any]:
    if not isinstance(part.get("column"), str) or not set(part) <= {"column", "descending"}:
        raise OptionError('Each item of sort is expected as {"column": NAME, "descending": true or false}.')
    if part["column"] not in columns:
        raise OptionError(f"There is no column {part['column']!r}; {nearest(part['column'], columns)}")
    return {"column": part["column"], "descending": part.get("descending") is True}


def _check(predicates: Sequence[Any], depth: int = 0) -> int:
    """Counts predicates, those within others too. Raises OptionError on one of another form, and on too many."""
    if depth > DEEPEST:
        raise OptionError(f"Predicates stand within each other more than {DEEPEST} deep; give a simpler filter.")
    count = 0
    for predicate in predicates:
        check_kind("each predicate", "object", predicate)
        inner = [name for name in ("any", "all") if name in predicate]
        if inner:
            if not isinstance(predicate[inner[0]], list) or not set(predicate) <= {inner[0], "not"}:
                raise OptionError(
                    f'{inner[0]} is expected as {{"{inner[0]}": [PREDICATE, ...]}}, with "not" if need be.'
                )
            count += _check(predicate[inner[0]], depth + 1)
        else:
            _check_parts(predicate)
        count += 1
    if count > MOST_PREDICATES:
        raise OptionError(f"The filter has more than {MOST_PREDICATES} predicates; give fewer.")
    return count


def _check_parts(predicate: Mapping[str, Any]) -> None:
    if unknown := [name for name in predicate if name not in PARTS]:
        raise OptionError(f"A predicate has no {unknown[0]!r}; {nearest(unknown[0], PARTS)}")
    for name in ("column", "op"):
        if not isinstance(predicate.get(name), str):
            raise OptionError(
                f'A predicate needs its {name}, as in {{"column": "op", "op": "contains", "value": "mm"}}.'
            )


def _single(predicates: Sequence[Any]) -> Iterator[Mapping[str, Any]]:
    for predicate in predicates:
        inner = predicate.get("any", predicate.get("all"))
        if inner is None:
            yield predicate
        else:
            yield from _single(inner)


def _check_value(predicate: Mapping[str, Any], *, is_text: bool) -> None:
    """Checks the value that a predicate compares with; which ops there are, the filters themselves say."""
    op, value, column = predicate["op"], predicate.get("value"), predicate["column"]
    if op == "null":
        return
    if op == "in":
        if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
            raise OptionError(f"The value of in on {column} is expected to be a list of strings.")
        return
    check_kind(f"the value of {op} on {column}", "string" if is_text else "number", value)
    if op == "regex":
        _check_pattern(str(value))


def _check_pattern(pattern: str) -> None:
    """Raises OptionError on a pattern that needs more than RE2, whose time grows with the text alone."""
    try:
        if len(pattern) > LONGEST_PATTERN:
            raise pa.ArrowInvalid("it is too long")
        pc.match_substring_regex(pa.array([""]), pattern)
    except pa.ArrowInvalid as invalid:
        reason = str(invalid).splitlines()[0].removeprefix("Invalid regular expression: ")
        raise OptionError(
            f"The regular expression cannot be used: {reason}; there is no looking around or back."
        ) from None
