"""Tests the device column: also of calls whose ops stand several levels below them."""

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

import nbkit


def test_every_call_above_an_op_has_its_device():
    model, x = nn.Sequential(nn.Linear(2, 2), nn.ReLU()), torch.ones(1, 2, requires_grad=True)
    with nbkit.optrace() as trace:
        checkpoint(model, x, use_reentrant=False).sum().backward()
    nested = trace.ops[(trace.ops["level"] == "api") & trace.ops["parent_id"].notna()]
    assert "torch.nn.functional.linear" in nested["op"].tolist()
    assert set(trace.ops["device"]) == {"cpu"}


class Later(torch.autograd.Function):
    """Runs a module in the backward pass, and no op besides."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        nn.ReLU()(grad)


def test_a_call_above_calls_alone_has_the_device_of_their_ops():
    x, grad = torch.ones(2, requires_grad=True), torch.ones(2)
    y = Later.apply(x)
    with nbkit.optrace() as trace:
        y.backward(grad)
    assert trace.ops[["op", "device"]].values.tolist() == [
        ["torch.Tensor.backward", "cpu"],
        ["torch.nn.functional.relu", "cpu"],
        ["aten.relu.default", "cpu"],
    ]


def test_the_first_output_decides():
    with nbkit.optrace(ops="aten.*") as trace:
        torch.ones(2).to("meta")
    assert trace.ops.set_index("op")["device"].to_dict() == {
        "aten.ones.default": "cpu",
        "aten._to_copy.default": "meta",
    }
