"""The kernel's executor of queries over cases.json, which widgets/test/report/execute.test.js reads, too."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from nbkit.analysis.query.encoded import Columns, text_column
from nbkit.analysis.query.matches import Query, matches
from nbkit.analysis.query.profile import profiles
from nbkit.errors import OptionError
from nbkit.schema import TEXT

CASES = json.loads((Path(__file__).parent / "cases.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def columns() -> Columns:
    texts = {name: text_column(pd.Series(values, dtype=TEXT)) for name, values in CASES["texts"].items()}
    numbers = {name: np.array(values, np.float64) for name, values in CASES["numbers"].items()}
    return Columns(len(CASES["texts"]["op"]), texts, numbers)


@pytest.mark.parametrize("case", CASES["queries"], ids=lambda case: case["name"])
def test_rows_of_every_query(columns: Columns, case: dict[str, Any]) -> None:
    found = matches(columns, Query(case["predicates"], case.get("sort", ())))
    assert (found.ids.tolist(), found.errors) == (case["rows"], {})


@pytest.mark.parametrize("case", CASES["profiles"], ids=lambda case: f"{case['column']} of {case['rows']}")
def test_profiles_of_columns(columns: Columns, case: dict[str, Any]) -> None:
    rows = np.array(case["rows"], np.int64)
    assert profiles(columns, rows, [case["column"]]) == {case["column"]: case["profile"]}


def test_a_large_table_is_profiled_by_an_even_sample() -> None:
    columns = Columns(200_000, {}, {"n": np.arange(200_000.0)})
    profile = profiles(columns, np.arange(200_000), ["n"])["n"]
    assert (profile["count"], profile["low"], profile["high"]) == (50_000, 0.0, 199_996.0)
    assert set(profile["bins"]) == {3125}


def test_a_regular_expression_that_is_none_here_is_named_and_left_out(columns: Columns) -> None:
    predicates = [{"column": "op", "op": "regex", "value": "\\u{41}("}, {"column": "self_time_us", "op": "null"}]
    found = matches(columns, Query(predicates))
    assert found.ids.tolist() == [3]
    assert found.errors["op"].startswith("The kernel cannot use the regular expression '\\\\u{41}(': ")


@pytest.mark.parametrize(
    ("predicate", "text"),
    [
        ({"column": "speed", "op": "null"}, "The table has no column 'speed'"),
        ({"column": "op", "op": "above", "value": 1}, "A column of this kind knows no 'above'"),
        ({"column": "self_time_us", "op": "contains", "value": "1"}, "A column of this kind knows no 'contains'"),
    ],
)
def test_what_is_not_known_is_refused(columns: Columns, predicate: dict[str, Any], text: str) -> None:
    with pytest.raises(OptionError, match=text):
        matches(columns, Query([predicate]))


@pytest.mark.parametrize(
    ("pattern", "ignore_case", "rows"),
    [("(?<=x)AB", False, [1]), ("(?<=x)AB", True, [0, 1]), ("xab", True, [0, 1]), ("xAB", False, [1])],
)
def test_a_pattern_that_looks_around_heeds_the_case_as_others_do(
    pattern: str, ignore_case: bool, rows: list[int]
) -> None:
    columns = Columns(3, {"op": text_column(pd.Series(["xab", "xAB", "AB"], dtype=TEXT))}, {})
    predicate = {"column": "op", "op": "regex", "value": pattern, "ignore_case": ignore_case}
    assert matches(columns, Query([predicate], ())).ids.tolist() == rows
