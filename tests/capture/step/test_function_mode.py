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


def test_api_calls_after_a_layer_that_may_be_fused_are_recorded_by_a_recording_and_one_inside_it():
    attention = nn.MultiheadAttention(8, 2, batch_first=True).eval()
    x = torch.ones(1, 3, 8)
    with torch.no_grad(), nbkit.optrace() as outer:
        with nbkit.optrace() as inner:
            torch.relu(attention(x, x, x)[0])
        torch.tanh(x)
    inside, around = (trace.ops.loc[trace.ops["level"] == "api", "op"].tolist() for trace in (inner, outer))
    assert inside[-1] == "torch.relu" and around[-2:] == ["torch.relu", "torch.tanh"]


def test_api_calls_of_a_module_that_runs_again_are_recorded_and_those_behind_it_are_not():
    layer, x = nn.Sequential(nn.Linear(2, 2), nn.Tanh()), torch.ones(1, 2, requires_grad=True)
    with nbkit.optrace() as trace:
        checkpoint(layer, x, use_reentrant=True).sum().backward()  # calls torch.autograd.backward
    backward = trace.ops[(trace.ops["level"] == "api") & (trace.ops["phase"] == "backward")]
    assert backward["op"].tolist() == ["torch.Tensor.backward", "torch.nn.functional.linear", "torch.tanh"]
