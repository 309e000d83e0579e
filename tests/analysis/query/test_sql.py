"""SQL finds the rows that the kernel's executor finds, over the cases of cases.json."""

import json
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from nbkit.analysis.query.sql import order_by, where
from nbkit.errors import OptionError

CASES = json.loads((Path(__file__).parent / "cases.json").read_text(encoding="utf-8"))
COLUMNS = {**dict.fromkeys(CASES["texts"], True), **dict.fromkeys(CASES["numbers"], False)}
LOOKS_AROUND = "(?"  # of regular expressions: DuckDB has RE2 alone


@pytest.fixture(scope="module")
def connection() -> Any:
    numbers = {
        name: pa.array(np.array(values, np.float64), from_pandas=True) for name, values in CASES["numbers"].items()
    }
    rows = pa.table({**CASES["texts"], **numbers, "row": list(range(len(CASES["texts"]["op"])))})
    connection = duckdb.connect()
    connection.register("cases", rows)
    return connection


def found(connection: Any, predicates: Any, sort: Any = ()) -> tuple[list[int], dict[str, str]]:
    condition = where(predicates, COLUMNS)
    order = ", ".join([*order_by(sort, COLUMNS), "row"])
    rows = connection.execute(f"SELECT row FROM cases WHERE {condition.text} ORDER BY {order}", condition.values)
    return [row for (row,) in rows.fetchall()], condition.errors


# DuckDB's lower() folds letters of other alphabets, but not the two signs that Unicode folds to k and s.
ANOTHER = {"contains folds letters one by one": []}


@pytest.mark.parametrize("case", CASES["queries"], ids=lambda case: case["name"])
def test_rows_of_every_query(connection: Any, case: dict[str, Any]) -> None:
    rows, errors = found(connection, case["predicates"], case.get("sort", ()))
    if errors:
        assert all("DuckDB cannot use this regular expression" in text for text in errors.values())
        assert LOOKS_AROUND in json.dumps(case["predicates"]) or "\\\\" in json.dumps(case["predicates"])
    else:
        assert rows == ANOTHER.get(case["name"], case["rows"])


def test_a_regular_expression_that_is_none_is_named_and_left_out(connection: Any) -> None:
    predicates = [{"column": "op", "op": "regex", "value": "a("}, {"column": "self_time_us", "op": "null"}]
    rows, errors = found(connection, predicates)
    assert rows == [3] and errors["op"].startswith("DuckDB cannot use this regular expression: missing ")


@pytest.mark.parametrize(
    ("predicate", "text"),
    [
        ({"column": 'x" OR true --', "op": "null"}, "The table has no column"),
        ({"column": "op", "op": "above", "value": 1}, "A column of this kind knows no 'above'"),
        ({"column": "self_time_us", "op": "contains", "value": "1"}, "A column of this kind knows no 'contains'"),
    ],
)
def test_what_is_not_known_is_refused(predicate: dict[str, Any], text: str) -> None:
    with pytest.raises(OptionError, match=text):
        where([predicate], COLUMNS)


def test_values_never_become_sql(connection: Any) -> None:
    value = "' OR true OR op = '"
    assert found(connection, [{"column": "op", "op": "equals", "value": value}]) == ([], {})
    assert isinstance(connection.execute("SELECT count(*) FROM cases").fetchall(), list)
