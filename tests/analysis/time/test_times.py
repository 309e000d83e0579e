"""Sums of self and total time by op, module, phase and input shapes."""

import numpy as np
import pandas as pd
from hypothesis import given, settings
from hypothesis import strategies as st

from nbkit.analysis.time.times import (
    by_input_shapes,
    by_kernel,
    by_module,
    by_module_and_phase,
    by_module_tree,
    by_op,
    computing_ops,
    host_ops,
    parent_rows,
    self_by_phase,
    self_totals,
    time_totals,
)
from tests.support.fakes import make_ops, small_trace

MM = {"op": "aten.mm.default", "model": "Net", "module": "fc"}


def gpu_ops() -> pd.DataFrame:
    """A module with an op that launches a kernel of 7 us, in a step of 30 us."""
    fc = {"model": "Net", "module": "fc"}
    above = {"total_device_time_us": 7.0, "self_device_time_us": 0.0}
    work = {"total_device_time_us": 7.0, "device": "cuda:0"}
    return make_ops(
        {"level": "range", "op": "step", "total_time_us": 30.0, "self_time_us": 10.0, **above},
        {"parent_id": 0, **MM, "total_time_us": 20.0, "self_time_us": 15.0, **above, "self_device_time_us": 7.0},
        {"parent_id": 1, "level": "runtime", "op": "cudaLaunchKernel", **fc, "self_time_us": 5.0},
        {"parent_id": 2, "level": "kernel", "op": "gemm", **fc, "self_time_us": 7.0, **work},
    )


def test_computing_ops_are_the_aten_ones_if_there_are_any() -> None:
    assert computing_ops(small_trace().ops)["op_id"].tolist() == [1, 2, 3, 5, 6, 7]
    assert computing_ops(make_ops({"level": "api"}, {"level": "kernel"}))["op_id"].tolist() == [0]
    assert len(computing_ops(make_ops({"level": "kernel"}))) == 1


def test_by_op_sums_calls_times_and_shares() -> None:
    ops = make_ops({"op": "a", "self_time_us": 1.0}, {"op": "b", "self_time_us": 6.0}, {"op": "a", "self_time_us": 3.0})
    totals = by_op(ops)
    assert totals["op"].tolist() == ["b", "a"]
    assert totals["calls"].tolist() == [1, 2]
    assert totals["self_time_us"].tolist() == totals["total_time_us"].tolist() == [6.0, 4.0]
    assert totals["self_fraction"].tolist() == totals["total_fraction"].tolist() == [0.6, 0.4]
    assert totals["self_device_time_us"].isna().all()


def test_a_total_counts_an_op_inside_its_own_kind_once() -> None:
    outer = {"op": "a", "total_time_us": 10.0, "self_time_us": 2.0}
    middle = {"op": "b", "parent_id": 0, "total_time_us": 8.0, "self_time_us": 5.0}
    totals = by_op(make_ops(outer, middle, {"op": "a", "parent_id": 1, "self_time_us": 3.0}, {"op": "a"}))
    assert totals.set_index("op")["total_time_us"].to_dict() == {"a": 11.0, "b": 8.0}
    assert totals.set_index("op")["self_time_us"].to_dict() == {"a": 6.0, "b": 5.0}
    assert totals.set_index("op")["calls"].to_dict() == {"a": 3, "b": 1}


def test_nesting_is_seen_among_the_rows_that_are_left() -> None:
    ops = make_ops(
        {"level": "module", "op": "Net"}, {"op": "a", "parent_id": 0, "total_time_us": 5.0}, {"op": "a", "parent_id": 1}
    )
    assert by_op(computing_ops(ops))["total_time_us"].tolist() == [5.0]


def test_a_parent_that_was_left_out_is_none() -> None:
    ops = make_ops({}, {"parent_id": 0}, {"parent_id": 1}, {"parent_id": 0})
    assert parent_rows(ops).tolist() == [-1, 0, 1, 0]
    assert parent_rows(ops.iloc[1:]).tolist() == [-1, 0, -1]
    assert parent_rows(ops.iloc[:0]).tolist() == []


def test_kernels_count_in_the_device_time_of_their_op_only() -> None:
    totals = by_op(gpu_ops()).set_index("op")
    assert "gemm" not in totals.index
    assert totals["self_time_us"].sum() == 30.0
    assert totals.loc["aten.mm.default", ["self_device_time_us", "total_device_time_us"]].tolist() == [7.0, 7.0]
    assert totals.loc["step", ["self_device_time_us", "total_device_time_us"]].tolist() == [0.0, 7.0]
    assert by_kernel(gpu_ops()).to_numpy().tolist() == [["cuda:0", "gemm", 1, 7.0, 1.0]]


def test_by_module_keeps_ops_outside_modules_and_tells_models_apart() -> None:
    ops = make_ops({"model": "A", "module": "x"}, {"model": "B", "module": "x"}, {})
    assert by_module(ops)["module"].isna().tolist() == [False, False, True]
    assert by_module(ops)["model"].tolist()[:2] == ["A", "B"]


def test_a_module_tree_adds_what_is_below() -> None:
    below = {"model": "Net", "module": "blocks.0.fc", "self_time_us": 6.0, "self_device_time_us": 4.0}
    tree = by_module_tree(make_ops({"model": "Net", "module": "", "self_time_us": 2.0}, below, {"self_time_us": 2.0}))
    assert tree["module"].tolist() == ["", "blocks", "blocks.0", "blocks.0.fc"]
    assert tree["self_time_us"].tolist() == [2.0, 0.0, 0.0, 6.0]
    assert tree["total_time_us"].tolist() == [8.0, 6.0, 6.0, 6.0]
    assert tree["total_fraction"].tolist() == [0.8, 0.6, 0.6, 0.6]
    assert tree["total_device_time_us"].tolist() == [4.0, 4.0, 4.0, 4.0]


def test_by_phase_keeps_the_order_in_which_phases_ran() -> None:
    totals = self_by_phase(small_trace().ops)
    assert totals["phase"].tolist() == ["forward", "backward", "optimizer"]
    assert totals["self_time_us"].tolist() == [58.0, 90.0, 2.0]


def test_self_totals_are_those_of_time_totals_without_nested_calls() -> None:
    for ops, names in ((gpu_ops(), ["op"]), (small_trace().ops, ["model", "module"]), (make_ops(), ["phase"])):
        own = self_totals(ops, names)
        assert list(own) == [*names, "calls", "self_time_us", "self_fraction", "self_device_time_us"]
        pd.testing.assert_frame_equal(own, time_totals(ops, names)[list(own)])


def test_modules_are_split_by_phase_and_ops_by_shapes() -> None:
    assert by_module_and_phase(small_trace().ops).iloc[0, :4].tolist() == ["Net", "fc", "backward", 1]
    ops = make_ops(
        {**MM, "input_shapes": "[[2, 3], [3, 4]]"}, {**MM, "input_shapes": "[[9, 3], [3, 4]]", "self_time_us": 5.0}, MM
    )
    assert by_input_shapes(ops)["input_shapes"].fillna("-").tolist() == ["[[9, 3], [3, 4]]", "[[2, 3], [3, 4]]", "-"]


def test_no_ops_and_no_time_give_no_share() -> None:
    assert len(by_op(make_ops())) == len(by_module_tree(make_ops())) == len(by_kernel(make_ops())) == 0
    assert by_op(make_ops({"self_time_us": 0.0}))["self_fraction"].tolist() == [0.0]


@settings(deadline=None)  # a busy machine is no failure
@given(st.lists(st.tuples(st.integers(0, 5), st.sampled_from("ab")), min_size=1, max_size=12))
def test_self_times_sum_to_the_step_and_no_total_exceeds_it(calls: list[tuple[int, str]]) -> None:
    parents = [-1, *(min(parent, row) for row, (parent, _) in enumerate(calls))]
    total = np.ones(len(parents))
    for row in range(len(parents) - 1, 0, -1):
        total[parents[row]] += total[row]
    rows = [
        {"op": op, "parent_id": None if parent < 0 else parent}
        for parent, (_, op) in zip(parents, [(0, "a"), *calls], strict=True)
    ]
    ops = make_ops(*rows).assign(total_time_us=total)
    totals = by_op(ops)
    assert totals["self_time_us"].sum() == len(parents) == total[0]
    assert (totals["total_time_us"] <= total[0]).all() and totals.set_index("op").loc["a", "total_time_us"] == total[0]


def test_host_ops_leave_kernels_out() -> None:
    assert host_ops(gpu_ops())["op_id"].tolist() == [0, 1, 2]
