"""Sums of self time by op, module and phase."""

import pandas as pd

from nbkit.analysis.slowest import by_module, by_op, by_phase, computing_ops, slowest_calls
from tests.fakes import make_ops, small_trace


def test_computing_ops_are_the_aten_ones_if_there_are_any() -> None:
    assert computing_ops(small_trace().ops)["op_id"].tolist() == [1, 2, 3, 5, 6, 7]
    assert len(computing_ops(make_ops({"level": "api"}, {"level": "kernel"}))) == 2


def test_slowest_calls_come_first_and_ties_in_call_order() -> None:
    ops = make_ops({"self_time_us": 1.0}, {"self_time_us": 3.0}, {"self_time_us": 3.0}, {"self_time_us": 2.0})
    assert slowest_calls(ops, 3)["op_id"].tolist() == [1, 2, 3]


def test_by_op_sums_calls_time_and_share() -> None:
    ops = make_ops({"op": "a", "self_time_us": 1.0}, {"op": "b", "self_time_us": 6.0}, {"op": "a", "self_time_us": 3.0})
    expected = pd.DataFrame(
        {"op": ["b", "a"], "calls": [1, 2], "self_time_us": [6.0, 4.0], "self_fraction": [0.6, 0.4]}
    )
    pd.testing.assert_frame_equal(by_op(ops).astype({"op": "str"}), expected.astype({"op": "str"}))


def test_by_module_keeps_ops_outside_modules_and_tells_models_apart() -> None:
    ops = make_ops({"model": "A", "module": "x"}, {"model": "B", "module": "x"}, {})
    assert by_module(ops)["module"].isna().tolist() == [False, False, True]
    assert by_module(ops)["model"].tolist()[:2] == ["A", "B"]


def test_by_phase_keeps_the_order_in_which_phases_ran() -> None:
    totals = by_phase(small_trace().ops)
    assert totals["phase"].tolist() == ["forward", "backward", "optimizer"]
    assert totals["self_time_us"].tolist() == [58.0, 90.0, 2.0]


def test_no_ops_and_no_time_give_no_share() -> None:
    assert len(by_op(make_ops())) == 0
    assert by_op(make_ops({"self_time_us": 0.0}))["self_fraction"].tolist() == [0.0]
