import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

import nbkit


def test_api_calls_after_a_layer_that_may_be_fused_are_recorded():
    attention = nn.MultiheadAttention(8, 2, batch_first=True).eval()
    x = torch.ones(1, 3, 8)
    with torch.no_grad(), nbkit.optrace() as trace:
        torch.relu(attention(x, x, x)[0])
    api = trace.ops[trace.ops["level"] == "api"]
    assert api["op"].tolist()[-1] == "torch.relu"


def test_ops_that_an_api_call_chooses_are_cast_after_a_layer_that_may_be_fused():
    attention = nn.MultiheadAttention(8, 2, batch_first=True).eval()
    x = torch.ones(1, 3, 8)
    with torch.no_grad(), nbkit.opcast("bfloat16", ops="torch.relu") as trace:
        torch.relu(attention(x, x, x)[0])
    api = trace.ops[trace.ops["level"] == "api"]
    assert api["op"].tolist()[-1] == "torch.relu"
    assert trace.replaced[["op", "ran"]].to_numpy().tolist() == [["aten.relu.default", "bfloat16"]]


def test_api_calls_of_a_module_that_runs_again_are_recorded_and_those_behind_it_are_not():
    layer, x = nn.Sequential(nn.Linear(2, 2), nn.Tanh()), torch.ones(1, 2, requires_grad=True)
    with nbkit.optrace() as trace:
        checkpoint(layer, x, use_reentrant=True).sum().backward()  # calls torch.autograd.backward
    backward = trace.ops[(trace.ops["level"] == "api") & (trace.ops["phase"] == "backward")]
    assert backward["op"].tolist() == ["torch.Tensor.backward", "torch.nn.functional.linear", "torch.tanh"]
