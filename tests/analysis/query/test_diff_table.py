"""The diff table's query: the worst first, filters, thresholds, and columns that only some traces have."""

import numpy as np
import pytest

from nbkit.analysis.query.diff_table import DiffQuery, diff_query, encode_diffs, is_wrong, worst_first
from nbkit.analysis.query.encoded import EncodedOps
from nbkit.errors import OptionError
from tests.diff_frames import make_diffs, ops_of, with_step_columns

ROWS = (
    {"noise_ratio": 2.0, "max_abs_error": 1e-6},
    {"status": "skipped"},
    {"status": "mismatch", "noise_ratio": 20.0, "max_abs_error": 0.1, "phase": "backward"},
    {"status": "mismatch", "noise_ratio": np.nan, "max_abs_error": np.nan, "op": "aten.exp.default"},
    {"status": "shape", "dtype": "bfloat16"},
    {"status": "mismatch", "noise_ratio": np.inf, "max_abs_error": 2.0, "module": "fc"},
)


@pytest.fixture
def rows() -> EncodedOps:
    diffs = make_diffs(*ROWS)
    return encode_diffs(diffs, ops_of(diffs))


def found(rows: EncodedOps, **wanted: object) -> list[int]:
    return diff_query(rows, DiffQuery(**wanted)).ids.tolist()  # type: ignore[arg-type]


def test_the_worst_stand_first_by_verdict_and_noise_ratio(rows: EncodedOps) -> None:
    assert worst_first(make_diffs(*ROWS)).tolist() == [5, 2, 3, 4, 0, 1]
    assert found(rows) == [5, 2, 3, 4, 0, 1]
    assert found(rows, sort="op_id") == [0, 1, 2, 3, 4, 5]


def test_a_verdict_that_is_not_known_stands_before_the_right_ones() -> None:
    assert worst_first(make_diffs({}, {"status": "odd"}, {"status": "mismatch"})).tolist() == [2, 1, 0]


def test_what_is_wrong_is_all_but_right_and_skipped(rows: EncodedOps) -> None:
    assert np.flatnonzero(is_wrong(rows)).tolist() == [2, 3, 4, 5]


def test_choices_and_filters_hold_together(rows: EncodedOps) -> None:
    assert found(rows, choices={"status": "mismatch"}) == [5, 2, 3]
    assert found(rows, choices={"status": "mismatch", "phase": "backward"}) == [2]
    assert found(rows, choices={"dtype": "float32"}, filters={"op": "exp"}) == [3]
    assert found(rows, search="step.py:4") == [4]


def test_a_threshold_leaves_what_is_as_large_and_what_is_wrong_without_a_figure(rows: EncodedOps) -> None:
    assert found(rows, thresholds={"noise_ratio": 20.0}) == [5, 2, 3, 4]
    assert found(rows, thresholds={"noise_ratio": 20.1}) == [5, 3, 4]
    assert found(rows, thresholds={"noise_ratio": 1.0, "max_abs_error": 1e-6}) == [5, 2, 3, 4, 0]


def test_a_module_stands_for_its_rows_and_outside_for_the_others(rows: EncodedOps) -> None:
    assert found(rows, module="fc") == [5]
    assert found(rows, outside_modules=True) == [2, 3, 4, 0, 1]


@pytest.mark.parametrize("wanted", [{"sort": "speed"}, {"thresholds": {"speed": 1.0}}, {"choices": {"speed": "a"}}])
def test_a_column_that_is_not_there_is_refused(rows: EncodedOps, wanted: dict[str, object]) -> None:
    with pytest.raises(OptionError, match="The table has no column 'speed'"):
        found(rows, **wanted)


def test_injected_and_inherited_errors_are_chosen_and_sorted() -> None:
    diffs = with_step_columns(make_diffs({}, {}, {}))
    rows = encode_diffs(diffs, ops_of(diffs))
    assert found(rows, choices={"error_class": "propagated"}) == [1, 2]
    assert found(rows, thresholds={"local_error": 0.1}) == [0]
    assert found(rows, sort="propagated_error", is_descending=True) == [1, 2, 0]
