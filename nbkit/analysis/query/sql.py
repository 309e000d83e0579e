"""Writes the predicates and the sort of a table's query as SQL, for frames that no process holds in memory.

tests/analysis/query/test_sql.py asks both, this and `predicates`, of the same rows.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from nbkit.analysis.query.predicates import NUMBER_OPS, TEXT_OPS, Predicate
from nbkit.errors import OptionError, nearest
from nbkit.schema import TABLES
from nbkit.trace.job.job import Job

COMPARED = {"equals": "=", "below": "<", "at_most": "<=", "above": ">", "at_least": ">="}


def kinds_of(frame: str) -> dict[str, bool]:
    """Returns the columns of a job's view by name, and whether each holds texts."""
    return {"rank": False, **{column.name: column.dtype == "str" for column in TABLES[frame].columns}}


def select(
    job: Job, frame: str, predicates: Sequence[Predicate], sort: Sequence[Mapping[str, Any]], names: Sequence[str] = ()
) -> tuple[str, list[Any]]:
    """Returns the query for rows of a frame of all ranks, and what its question marks stand for.

    Without a sort they come by rank and as they lie in its file. Raises OptionError on what is not known.
    """
    if frame not in job.files:
        raise OptionError(f"This job has no frame {frame!r}; {nearest(frame, ['ranks', *job.files])}")
    columns = kinds_of(frame)
    found, terms = where(predicates, columns), order_by(sort, columns)
    order = f" ORDER BY {', '.join(terms)}" if terms else ""
    shown = ", ".join(named(name, columns) for name in names) or "*"
    return f'SELECT {shown} FROM "{frame}" WHERE {found.text}{order}', found.values


@dataclass
class Where:
    """Holds a condition, what its question marks stand for, and by column why a predicate was left out."""

    text: str
    values: list[Any] = field(default_factory=list)
    errors: dict[str, str] = field(default_factory=dict)


def named(column: str, columns: Mapping[str, bool]) -> str:
    """Returns a column as SQL has it. Raises OptionError if the table has none of that name."""
    if column not in columns:
        raise OptionError(f"The table has no column {column!r}; {nearest(column, columns)}")
    return f'"{column}"'


def where(predicates: Sequence[Predicate], columns: Mapping[str, bool]) -> Where:
    """Returns the condition that all predicates hold; `columns` says by name whether a column holds texts.

    Raises OptionError on a column or op that is not known.
    """
    found = Where("")
    parts = []
    for predicate in predicates:
        try:
            text, values = _fits(predicate, columns)
        except pa.ArrowInvalid as error:
            reason = str(error).splitlines()[0].removeprefix("Invalid regular expression: ")
            found.errors[str(predicate.get("column"))] = f"DuckDB cannot use this regular expression: {reason}."
            continue
        parts.append(text)
        found.values += values
    found.text = " AND ".join(parts) or "true"
    return found


def order_by(sort: Sequence[Mapping[str, Any]], columns: Mapping[str, bool]) -> list[str]:
    """Returns the terms of an ORDER BY; missing values come last, whichever way it goes."""
    return [
        f"{named(part['column'], columns)} {'DESC' if part.get('descending') else 'ASC'} NULLS LAST" for part in sort
    ]


def before(sort: Sequence[Mapping[str, Any]], row: Mapping[str, Any]) -> tuple[str, list[Any]]:
    """Returns the condition that a row stands before this one in an order, and what its question marks stand for."""
    parts, equal = list[str](), ["true"]
    asked, so_far = list[Any](), list[Any]()
    for part in sort:
        name, value = f'"{part["column"]}"', row[part["column"]]
        sign = ">" if part.get("descending") else "<"
        is_before = f"coalesce({name} {sign} ?, false)" if value is not None else f"{name} IS NOT NULL"
        parts.append(f"({' AND '.join(equal)} AND {is_before})")
        asked += [*so_far, *([] if value is None else [value])]
        equal.append(f"{name} IS NOT DISTINCT FROM ?")
        so_far.append(value)
    return " OR ".join(parts), asked


def _fits(predicate: Predicate, columns: Mapping[str, bool]) -> tuple[str, list[Any]]:
    if "any" in predicate or "all" in predicate:
        is_any = "any" in predicate
        inner = [_fits(part, columns) for part in predicate["any" if is_any else "all"]]
        text = (" OR " if is_any else " AND ").join(part for part, _ in inner) or ("false" if is_any else "true")
        values = [value for _, part in inner for value in part]
    else:
        text, values = _column_fits(predicate, columns)
    return (f"NOT ({text})" if predicate.get("not") else f"({text})"), values


def _column_fits(predicate: Predicate, columns: Mapping[str, bool]) -> tuple[str, list[Any]]:
    """Returns a condition that is true or false, never null, so that NOT turns it around."""
    name, op = named(predicate["column"], columns), predicate["op"]
    is_text = columns[predicate["column"]]
    if op == "null":
        return f"{name} IS NULL", []
    known = TEXT_OPS if is_text else NUMBER_OPS
    if op not in known:
        raise OptionError(f"A column of this kind knows no {op!r}; {nearest(op, ['null', *known])}")
    text, values = _text_fits(name, op, predicate) if is_text else _number_fits(name, op, float(predicate["value"]))
    return f"coalesce({text}, false)", values


def _number_fits(name: str, op: str, value: float) -> tuple[str, list[Any]]:
    # Of a whole number DuckDB knows which files and row groups cannot hold it.
    return f"{name} {COMPARED[op]} ?", [int(value) if value.is_integer() and abs(value) < 2**53 else value]


def _text_fits(name: str, op: str, predicate: Predicate) -> tuple[str, list[Any]]:
    value = predicate["value"]
    if op == "in":
        return (f"{name} IN ({', '.join('?' for _ in value)})" if value else "false"), list(value)
    if op == "contains":
        # Unlike `predicates`, which folds as Unicode does, this takes the Kelvin sign for no k: names of ops have none.
        return f"contains(lower({name}), lower(?))", [value]
    if op == "regex":
        pc.match_substring_regex(pa.array([""]), value)  # the same engine, RE2: raises ArrowInvalid
        value = re.sub(r"\(\?<(?=[A-Za-z_])", "(?P<", value)  # which DuckDB has in an older version
        return f"regexp_matches({name}, ?, '{'i' if predicate.get('ignore_case') else 'c'}')", [value]
    if op == "inside":
        return (f"{name} = ? OR starts_with({name}, ?)", [value, f"{value}."]) if value else (f"{name} IS NOT NULL", [])
    return f"{name} = ?", [value]
