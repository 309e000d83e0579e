import torch
from torch import nn

import nbkit


def test_api_calls_after_a_layer_that_may_be_fused_are_recorded():
    attention = nn.MultiheadAttention(8, 2, batch_first=True).eval()
    x = torch.ones(1, 3, 8)
    with torch.no_grad(), nbkit.optrace() as trace:
        torch.relu(attention(x, x, x)[0])
    api = trace.ops[trace.ops["level"] == "api"]
    assert api["op"].tolist()[-1] == "torch.relu"
