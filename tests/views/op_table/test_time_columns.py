"""Tests what the op table says of times: shares of the step, totals and phases of groups, how runs differ."""

from typing import Any

import numpy as np
import pytest

from nbkit.views.op_table.source import OpSource
from tests.support.fakes import make_ops, make_trace, repeated_trace, timed_trace

TOTALS = {
    "self_time_us": "sum",
    "self_fraction": "sum",
    "total_time_us": "outer",
    "iqr_us": "iqr",
    "min_us": "least",
    "median_us": "middle",
}


def grouped(source: OpSource, by: str, predicates: list[Any] | None = None, **more: Any) -> Any:
    group = {"by": [by], "totals": {**TOTALS, "forward_us": "sum", "backward_us": "sum"}, **more}
    source.answer({"kind": "rows", "query": {"group": group, "predicates": predicates or []}})
    return source.groups().set_index(by)


def test_shares_are_of_the_self_time_of_the_host_and_devices_have_none() -> None:
    shares = OpSource(timed_trace()).columns.numbers["self_fraction"]
    assert shares.tolist()[:4] == pytest.approx([0.08, 0.032, 0.16, 0.048])
    assert np.isnan(shares[4])
    assert np.nansum(shares) == pytest.approx(1.0)
    ops = grouped(OpSource(timed_trace()), "op")
    assert ops.loc["aten.mm.default", "self_fraction"] == pytest.approx(0.4)


def test_ops_group_by_the_users_own_lines_where_some_ran_in_a_library() -> None:
    in_library = {"source": "einops.py:1", "own_source": "net.py:7", "self_time_us": 2.0}
    source = OpSource(make_trace(make_ops(in_library, {"source": "net.py:7", "self_time_us": 1.0})))
    assert grouped(source, "own_source")["self_time_us"].to_dict() == {"net.py:7": 3.0}
    assert (source.overview()["libraries"], "own_source" in source.shown_columns) == (True, True)
    of_own = OpSource(make_trace(make_ops({"source": "net.py:7"})))
    assert (of_own.overview()["libraries"], "own_source" in of_own.shown_columns) == (False, False)


def test_the_total_of_a_group_counts_calls_inside_another_of_it_once() -> None:
    rows = [{"op": "a", "self_time_us": 1.0, "total_time_us": 9.0}]
    rows += [{"op": "b", "parent_id": 0, "total_time_us": 7.0}, {"op": "a", "parent_id": 1, "total_time_us": 5.0}]
    source = OpSource(make_trace(make_ops(*rows, {"op": "a", "total_time_us": 2.0})))
    assert grouped(source, "op")["total_time_us"].to_dict() == {"a": 11.0, "b": 7.0}
    only_b = [{"column": "op", "op": "equals", "value": "b"}]
    assert grouped(source, "phase", only_b)["total_time_us"].tolist() == [7.0]


def test_a_line_has_the_time_of_its_forward_and_its_backward_pass() -> None:
    backward = {"phase": "backward", "forward_op_id": 0, "self_time_us": 5.0}
    trace = make_trace(make_ops({"source": "a.py:1", "self_time_us": 2.0}, backward, {"self_time_us": 4.0}))
    lines = grouped(OpSource(trace), "source", only=["forward_us", "backward_us"])
    assert lines.loc["a.py:1", ["self_time_us", "forward_us", "backward_us"]].tolist() == [7.0, 2.0, 5.0]


def test_a_filter_on_a_column_of_groups_leaves_out_groups_by_what_they_show() -> None:
    rows = [{"op": "mm", "self_time_us": 600.0}] * 3 + [{"op": "add", "self_time_us": 1100.0}, {"op": "exp"}]
    source = OpSource(make_trace(make_ops(*rows)))
    found = grouped(source, "op", [{"column": "self_time_us", "op": "above", "value": 1000.0}])
    assert found["self_time_us"].to_dict() == {"mm": 1800.0, "add": 1100.0}
    assert source.shown().matched.tolist() == [0, 1, 2, 3]
    both = [{"column": "calls", "op": "above", "value": 1}, {"column": "op", "op": "contains", "value": "m"}]
    assert grouped(source, "op", both).index.tolist() == ["mm"]


def test_runs_are_told_apart_by_iqr_and_least_of_single_calls_and_of_groups() -> None:
    source = OpSource(repeated_trace())
    numbers = source.columns.numbers
    assert (numbers["min_us"][2], numbers["min_us"][7]) == (19.0, 9.0)
    assert numbers["iqr_us"][2] == np.subtract(*np.percentile([19.0, 9980.0, 21.0, 20.0], [75, 25]))
    assert numbers["iqr_us"][7] == 0.5
    ops = grouped(source, "op", only=["median_us"])
    sums = [48.0, 10_010.0, 52.0, 50.0]
    assert ops.loc["aten.mm.default", "iqr_us"] == pytest.approx(np.subtract(*np.percentile(sums, [75, 25])))
    assert ops.loc["aten.mm.default", ["min_us", "median_us"]].tolist() == [48.0, 51.0]


def test_a_call_that_one_run_disturbed_says_so() -> None:
    slow = OpSource(repeated_trace()).columns.texts["slow_runs"].column()
    assert slow.dropna().to_dict() == {2: "9.98 ms in 1 of 4 runs"}
    assert "slow_runs" in OpSource(repeated_trace()).shown_columns
    assert not {"slow_runs", "iqr_us", "min_us"} & set(OpSource(timed_trace()).shown_columns)
