"""The diff table's columns: the worst first, and columns that only some traces have."""

import numpy as np
import pytest

from nbkit.analysis.query.diff_table import encode_diffs, is_wrong, worst_first
from nbkit.analysis.query.encoded import Columns
from tests.support.diff_frames import make_diffs, ops_of, with_step_columns

ROWS = (
    {"noise_ratio": 2.0, "max_abs_error": 1e-6},
    {"status": "skipped"},
    {"status": "mismatch", "noise_ratio": 20.0, "max_abs_error": 0.1, "phase": "backward"},
    {"status": "mismatch", "noise_ratio": np.nan, "max_abs_error": np.nan, "op": "aten.exp.default"},
    {"status": "shape", "dtype": "bfloat16"},
    {"status": "mismatch", "noise_ratio": np.inf, "max_abs_error": 2.0, "module": "fc"},
)


@pytest.fixture
def rows() -> Columns:
    diffs = make_diffs(*ROWS)
    return encode_diffs(diffs, ops_of(diffs))


def test_the_worst_stand_first_by_verdict_and_noise_ratio(rows: Columns) -> None:
    assert worst_first(make_diffs(*ROWS)).tolist() == [5, 2, 3, 4, 0, 1]
    assert rows.numbers["rank"].tolist() == [5, 6, 2, 3, 4, 1]


def test_a_verdict_that_is_not_known_stands_before_the_right_ones() -> None:
    assert worst_first(make_diffs({}, {"status": "odd"}, {"status": "mismatch"})).tolist() == [2, 1, 0]


def test_what_is_wrong_is_all_but_right_and_skipped(rows: Columns) -> None:
    assert np.flatnonzero(is_wrong(rows)).tolist() == [2, 3, 4, 5]


def test_a_row_without_a_verdict_is_not_wrong() -> None:
    diffs = make_diffs({"status": "mismatch"}, {})
    diffs.loc[1, "status"] = None
    assert is_wrong(encode_diffs(diffs, ops_of(diffs))).tolist() == [True, False]


def test_columns_of_a_whole_step_and_of_the_op_are_there() -> None:
    diffs = with_step_columns(make_diffs({}, {}, {}))
    rows = encode_diffs(diffs, ops_of(diffs))
    assert {"error_class", "source", "model"} <= set(rows.texts)
    assert rows.numbers["local_error"].tolist()[1:] == [1e-07, 1e-07]
