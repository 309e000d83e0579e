"""The requires_grad column says what torch says of each tensor, also of those that are gone."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tests.capture.models import record, tensor_rows


def flags(trace, packet, role="output"):
    return tensor_rows(trace, packet, role)["requires_grad"].tolist()


LEAF = [0.5, -1.0, 2.0, 1.5]
# name: (function of a leaf that returns tensors, packet whose outputs they are)
OUTPUTS = {
    "exp": (lambda x: x.exp(), "aten.exp"),
    "detached": (lambda x: x.detach().exp(), "aten.exp"),
    "no_grad": (torch.no_grad()(lambda x: x.exp()), "aten.exp"),
    "sort": (lambda x: x.sort(), "aten.sort"),
    "layer_norm": (lambda x: torch.native_layer_norm(x, (4,), None, None, 1e-5), "aten.native_layer_norm"),
    "batch_norm": (
        lambda x: torch.native_batch_norm(x.view(2, 2), None, None, None, None, True, 0.1, 1e-5),
        "aten.native_batch_norm",
    ),
    "dropout": (lambda x: torch.native_dropout(x, 0.5, True), "aten.native_dropout"),
    "comparison": (lambda x: x > 0, "aten.gt"),
    "argmax": (lambda x: x.argmax(), "aten.argmax"),
    "to int": (lambda x: x.to(torch.int64), "aten._to_copy"),
    "of a constant": (lambda x: torch.ones(3).exp(), "aten.exp"),
    "max_pool": (lambda x: F.max_pool1d(x.view(1, 4), 2, return_indices=True), "aten.max_pool2d_with_indices"),
    "unbind": (lambda x: x.unbind(), "aten.unbind"),
    "zeros_like": (lambda x: torch.zeros_like(x), "aten.zeros_like"),
    "attention": (
        lambda x: torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(*[x.view(1, 1, 2, 2)] * 3),
        "aten._scaled_dot_product_flash_attention_for_cpu",
    ),
    "group_norm": (
        lambda x: torch.native_group_norm(x.view(1, 2, 2), None, None, 1, 2, 2, 1, 1e-5),
        "aten.native_group_norm",
    ),
    "nll": (lambda x: F.cross_entropy(x.view(1, 4), torch.tensor([1])), "aten.nll_loss_forward"),
}


@pytest.mark.parametrize("keep", [True, False], ids=["captured", "gone"])
@pytest.mark.parametrize("name", OUTPUTS)
def test_outputs(name, keep):
    function, packet = OUTPUTS[name]
    x, kept = torch.tensor(LEAF, requires_grad=True), []
    out = function(x)
    expected = [t.requires_grad for t in (out if isinstance(out, tuple) else (out,))]
    trace = record(lambda: kept.append(function(x)) if keep else (function(x), None)[1])
    assert flags(trace, packet)[: len(expected)] == expected


@pytest.mark.parametrize("keep", [True, False], ids=["captured", "gone"])
def test_a_constant_that_is_written_to_requires_a_gradient_from_then_on(keep):
    def step():
        y = torch.zeros(4)
        y.exp()
        y.mul_(w)
        y.sin().sum().backward()
        kept.extend([y] * keep)

    w, kept = torch.ones(4, requires_grad=True), []
    trace = record(step)
    assert flags(trace, "aten.zeros") == [False]
    assert flags(trace, "aten.exp", "input") == [False]
    assert flags(trace, "aten.sin", "input") == [True]
    assert flags(trace, "aten.sin") == [True]


def test_requires_grad_that_is_switched_inside():
    def step():
        x = torch.zeros(3)
        x.exp()
        x.requires_grad_()
        x.exp()
        x.requires_grad_(False)
        x.exp()
        x.requires_grad = True
        x.exp()

    trace = record(step)
    assert flags(trace, "aten.exp", "input") == [False, True, False, True]
    assert flags(trace, "aten.exp") == [False, True, False, True]


class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return (x * 2).add(1)

    @staticmethod
    def backward(ctx, grad):
        return grad * 2


def test_the_result_of_a_custom_function_requires_a_gradient():
    x, kept = torch.ones(2, requires_grad=True), []
    trace = record(lambda: kept.append(Twice.apply(x)) or kept[0].exp().sum().backward())
    assert flags(trace, "aten.exp", "input") == [True]
    assert flags(trace, "aten.exp") == [True]


def test_frozen_parameters_and_gradients_do_not():
    layer = nn.Linear(2, 2)
    layer.bias.requires_grad = False
    trace = record(lambda: layer(torch.ones(1, 2)).sum().backward())
    rows = trace.tensors.set_index("name")
    assert not rows.loc["bias", "requires_grad"]
    backward = trace.ops.loc[trace.ops["phase"] == "backward", "op_id"]
    made = trace.tensors[trace.tensors["op_id"].isin(backward) & (trace.tensors["role"] == "output")]
    assert not made["requires_grad"].any()
