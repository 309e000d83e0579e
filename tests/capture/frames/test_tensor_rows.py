import pytest
import torch

from tests.capture.models import record


@pytest.mark.parametrize("dtype", [torch.float32, torch.complex64])
def test_results_that_are_gone_require_a_gradient_if_what_they_are_made_of_does(dtype):
    x, y = torch.ones(2, dtype=dtype, requires_grad=True), torch.ones(2, dtype=dtype)
    trace = record(lambda: (torch.mul(y, y), torch.neg(torch.mul(x, y))))
    outputs = trace.tensors[trace.tensors["role"] == "output"]
    assert outputs["requires_grad"].tolist() == [False, True, True]


def test_integers_require_none():
    x = torch.ones(2, 2, requires_grad=True)
    trace = record(lambda: x.max(0))
    outputs = trace.tensors[trace.tensors["role"] == "output"]
    assert outputs[["dtype", "requires_grad"]].values.tolist() == [["float32", True], ["int64", False]]


def test_a_leaf_that_was_made_and_dropped_inside_requires_one():
    x, labels = torch.ones(3, requires_grad=True), torch.ones(3)

    def step():
        hard = torch.tensor([1.0, 0.0, 1.0], requires_grad=True)
        return ((hard * labels).sum() + x.sum()).backward()

    trace = record(step)
    product = trace.ops.query("op == 'aten.mul.Tensor'")["op_id"].iloc[0]
    rows = trace.tensors[trace.tensors["op_id"] == product]
    assert rows["requires_grad"].tolist() == [True, False, True]
    made = trace.tensors[(trace.tensors["tensor_id"] == rows["tensor_id"].iloc[0]) & (trace.tensors["op_id"] < product)]
    assert not made["requires_grad"].any()
