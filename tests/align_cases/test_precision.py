"""A model in another dtype is the same model: rounding is no divergence, also where a result is nearly zero."""

import copy

import pytest
import torch
from torch import nn

import nbkit


def norms():
    """The mean of what the second norm reads is nearly zero: all of it is rounding."""
    return nn.Sequential(nn.Linear(16, 32), nn.LayerNorm(32), nn.LayerNorm(32), nn.Linear(32, 8)).eval()


@pytest.mark.parametrize(
    "dtypes", [("float32", "float64"), ("float64", "float32"), ("float32", "bfloat16")], ids="-".join
)
def test_another_dtype_is_no_divergence(dtypes):
    torch.manual_seed(0)
    model, x = norms(), torch.randn(4, 16)
    left, right = ((copy.deepcopy(model).to(dtype), x.to(dtype)) for dtype in (getattr(torch, name) for name in dtypes))
    trace = nbkit.opalign(left[0], right[0], inputs=(left[1],), right_inputs=(right[1],))
    assert trace.meta["first_divergence"] is None
    with torch.no_grad():
        right[0][2].weight.mul_(1.3)
    trace = nbkit.opalign(left[0], right[0], inputs=(left[1],), right_inputs=(right[1],))
    assert trace.meta["first_divergence"]["right"]["name"] == "2.weight"
