"""The slowest groups of calls with their slowest call."""

import numpy as np

from nbkit.analysis.time.times import slowest_groups
from tests.support.fakes import make_ops


def test_groups_come_slowest_first_with_their_slowest_call() -> None:
    ops = make_ops(
        {"op": "a", "self_time_us": 2.0}, {"op": "b", "self_time_us": 6.0}, {"op": "a", "self_time_us": 5.0},
        {"op": "c", "self_time_us": 1.0}, {"op": "gemm", "level": "kernel", "self_time_us": 99.0},
    )  # fmt: skip
    found = slowest_groups(ops, ["op"], 2)
    assert found[["op", "calls", "self_time_us", "op_id"]].values.tolist() == [["a", 2, 7.0, 2], ["b", 1, 6.0, 1]]


def test_a_missing_name_is_a_group_and_a_missing_time_is_the_least() -> None:
    ops = make_ops(
        {"module": "fc", "self_time_us": np.nan}, {"module": "fc", "self_time_us": 1.0}, {"self_time_us": 3.0}
    )
    found = slowest_groups(ops, ["model", "module"], 5)
    assert found["op_id"].tolist() == [2, 1]
    assert found["module"].isna().tolist() == [True, False]
