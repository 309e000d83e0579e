from nbkit.views.op_table.report_tensors import tensor_data
from tests.fakes import make_tensors


def test_positions_that_count_up_and_ids_without_a_gap_take_no_room():
    rows = ((0, "input", 0), (0, "input", 1), (0, "output", 2), (1, "input", 2), (1, "input", 0), (1, "output", 3))
    data = tensor_data(make_tensors(*rows))
    assert data["position"].values.tolist() == [1] * 6
    assert data["fresh"].values.tolist() == [1] * 4
    assert data["seen"].values.tolist() == [0, 0, 0, 1, 4, 0]
