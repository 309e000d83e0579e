"""Tensors as they are packed for a report."""

import pytest

from nbkit.views.op_table import report_tensors
from nbkit.views.op_table.report_tensors import KEPT, LEFT_OUT, NONE, tensor_data
from tests.support.fakes import make_tensors


def test_positions_that_count_up_and_ids_without_a_gap_take_no_room():
    rows = ((0, "input", 0), (0, "input", 1), (0, "output", 2), (1, "input", 2), (1, "input", 0), (1, "output", 3))
    data = tensor_data(make_tensors(*rows))
    assert data["position"].values.tolist() == [1] * 6
    assert data["fresh"].values.tolist() == [1] * 4
    assert data["seen"].values.tolist() == [0, 0, 0, 1, 4, 0]


def test_statistics_are_kept_of_so_many_and_of_bad_tensors_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report_tensors, "MOST_STATISTICS", 2)
    tensors = make_tensors(*((0, "input", n) for n in range(5)))
    tensors["nan_count"] = [0, None, 0, 0, 3]
    tensors["inf_count"] = [0, None, 0, 0, 0]
    tensors["mean"] = [0.5, None, 0.25, 0.125, None]
    data = tensor_data(tensors.astype({"nan_count": "Int64", "inf_count": "Int64", "mean": "float64"}))
    kept = [KEPT, NONE, LEFT_OUT, LEFT_OUT, KEPT]
    assert data["has_statistics"].values.tolist() == [state + 1 for state in kept]
    assert [column.values.size for column in data["statistics"].values()] == [2] * len(data["statistics"])
    assert data["count"] == 5
