"""Tells in which API call of the step an op runs, and that it is in none when the call has ended."""

import torch
import torch.nn.functional as F
from torch import nn

import nbkit


def test_a_fused_layer_after_an_api_call_is_not_below_it():
    """API calls are not followed into it: its fused path is taken where no function mode is on."""
    layer, x = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval(), torch.randn(2, 3, 8)
    with torch.no_grad(), nbkit.opfallback(ops="softmax") as trace:
        layer(x)  # the first call of a module is one that the recorder asks its parameters in
        F.softmax(x, -1)
        layer(x)
    assert (trace.ops["op"] == "aten._transformer_encoder_layer_fwd.default").sum() == 2
    assert trace.replaced["op"].tolist() == ["aten._softmax.default"]
