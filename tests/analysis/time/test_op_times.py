"""A row per call of an op, with the time of its backward pass beside it."""

import pandas as pd
import pytest
import torch
from torch.utils.checkpoint import checkpoint

import nbkit
from nbkit.analysis.time.op_times import op_times
from nbkit.schema import OPS
from nbkit.trace.trace import Trace
from tests.support.fakes import make_ops, make_tensors

LINEAR = "torch.nn.functional.linear"


def trace_of(ops, tensors=None):
    return Trace({"ops": ops} | ({} if tensors is None else {"tensors": tensors}), {"verb": "optrace"})


def linear_step():
    """A linear call of 10 us with two aten ops, an op without a backward pass, and the backward pass of 7 us."""
    backward = {"phase": "backward", "parent_id": 4}
    return make_ops(
        {"level": "api", "op": LINEAR, "total_time_us": 10.0, "self_time_us": 2.0, "module": "fc"},
        {"op": "aten.t.default", "parent_id": 0, "self_time_us": 3.0, "module": "fc"},
        {"op": "aten.addmm.default", "parent_id": 0, "self_time_us": 5.0, "module": "fc"},
        {"op": "aten.exp.default", "self_time_us": 1.5, "phase": "other"},
        {"level": "api", "op": "torch.Tensor.backward", "phase": "backward", "total_time_us": 20.0},
        {"op": "aten.mm.default", **backward, "forward_op_id": 2, "self_time_us": 4.0},
        {"op": "aten.sum.dim_IntList", **backward, "forward_op_id": 2, "self_time_us": 2.0},
        {"op": "aten.t.default", **backward, "forward_op_id": 1, "self_time_us": 1.0},
        {"op": "aten.detach.default", **backward, "self_time_us": 0.5},
    )


def test_forward_and_backward_stand_side_by_side():
    tensors = make_tensors((1, "input", 7), (1, "output", 8), (2, "input", 9), (2, "input", 8), (2, "output", 5))
    table = op_times(trace_of(linear_step(), tensors))
    assert table["op"].tolist() == [LINEAR, "aten.exp.default"]
    assert table["op_id"].tolist() == [0, 3]
    assert table["forward_us"].tolist() == [10.0, 1.5]
    assert table["backward_us"].fillna(-1).tolist() == [7.0, -1]
    row = table.iloc[0]
    assert row["aten"] == "aten.t.default, aten.addmm.default"
    assert (row["module"], row["phase"], row["device"]) == ("fc", "forward", "cpu")
    # What t hands on to addmm is neither.
    assert (row["inputs"], row["outputs"]) == ("float32[2, 8], float32[2, 8]", "float32[2, 8]")
    assert table.drop(columns=["op_id", "op", "aten", "phase", "forward_us"]).iloc[1].isna().all()


def test_an_op_that_writes_reads_and_returns_the_same_tensor():
    ops = make_ops({"op": "aten.add_.Tensor"})
    (row,) = op_times(trace_of(ops, make_tensors((0, "input", 3), (0, "output", 3)))).to_dict("records")
    assert (row["inputs"], row["outputs"]) == ("float32[2, 8]", "float32[2, 8]")


def test_ops_inside_ops_of_the_profiler_count_once():
    node = {"phase": "backward", "forward_op_id": 0}
    ops = make_ops(
        {"op": "aten.linear.default", "total_time_us": 9.0, "self_time_us": 4.0, "input_dtypes": '["float32", null]',
         "input_shapes": "[[2, 8], []]"},
        {"op": "aten.addmm.default", "parent_id": 0, "self_time_us": 5.0},
        {"level": "range", "op": "AddmmBackward0", **node, "total_time_us": 8.0, "self_time_us": 2.0},
        {"op": "aten.mm.default", **node, "parent_id": 2, "total_time_us": 6.0, "self_time_us": 1.0},
        {"op": "aten.empty.default", **node, "parent_id": 3, "self_time_us": 5.0},
    )  # fmt: skip
    (row,) = op_times(trace_of(ops)).to_dict("records")
    assert (row["forward_us"], row["backward_us"], row["inputs"]) == (9.0, 8.0, "float32[2, 8]")
    assert pd.isna(row["outputs"])


def test_kernels_are_the_device_time_of_what_launched_them():
    device = {"total_device_time_us": 30.0, "self_device_time_us": 30.0}
    ops = make_ops(
        {"op": "aten.exp.default", **device, "device": "cuda:0"},
        {"level": "kernel", "op": "vectorized", "parent_id": 0, "self_time_us": 30.0},
        {"op": "aten.mul.Tensor", **device, "phase": "backward", "forward_op_id": 0, "self_device_time_us": 12.0},
    )
    (row,) = op_times(trace_of(ops)).to_dict("records")
    assert (row["device"], row["forward_device_us"], row["backward_device_us"]) == ("cuda:0", 30.0, 12.0)


@pytest.mark.parametrize("verb", [nbkit.optrace, nbkit.optime])
def test_times_of_a_step_are_all_told(verb):
    torch.manual_seed(0)
    model, x = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Softmax(1)), torch.randn(3, 4)
    with verb() as trace:
        model(x).sort(dim=1).values.sum().backward()
    table, ops = nbkit.op_times(trace), trace.ops
    linked = ops[(ops["phase"] == "backward") & ops["forward_op_id"].notna()]
    assert table["backward_us"].sum() == pytest.approx(linked["self_time_us"].sum())
    assert table["backward_us"].notna().sum() == 4
    names = ["linear", "softmax", "sort", "sum"]
    expected = [f"aten.{name}" for name in names] if verb is nbkit.optime else names
    assert all(name in op for name, op in zip(expected, table["op"], strict=True))


def test_what_a_checkpoint_computes_again_has_rows_of_its_own():
    model, x = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Tanh()), torch.randn(3, 4, requires_grad=True)
    with nbkit.optrace() as trace:
        checkpoint(model, x, use_reentrant=False).sum().backward()
    table = nbkit.op_times(trace)
    again = table[table["phase"] == "backward"]["op"].tolist()
    assert again[0] == LINEAR and set(again) <= {LINEAR, "torch.tanh"}
    assert table[table["phase"] == "forward"]["op"].tolist() == [LINEAR, "torch.tanh", "torch.Tensor.sum"]


def test_no_ops_are_no_rows():
    assert len(op_times(trace_of(OPS.frame()))) == 0
    assert [*op_times(trace_of(OPS.frame()))] == [*op_times(trace_of(linear_step()))]
    with pytest.raises(nbkit.OptionError, match="expected to be a trace"):
        op_times(linear_step())
