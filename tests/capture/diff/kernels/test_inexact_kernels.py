"""A kernel of torch that opdiff calls wrong on the CPU, against a formula of our own in float64: it is that inexact."""

import pytest
import torch
from torch import Tensor

from tests.capture.diff.planted import compared, wrong

X = (torch.randn(3, 2, 3, 4, generator=torch.Generator().manual_seed(1)) * 5).bfloat16()
WEIGHT, MEAN, SCALE = (torch.tensor(pair).bfloat16() for pair in ([-8.5, -1.75], [-1.32, 1.164], [0.201, 0.23]))
ONES = {"expanded": torch.ones((), dtype=torch.bfloat16).expand(X.shape), "dense": torch.ones_like(X)}


def weight_gradient(gradient: Tensor) -> Tensor:
    """What torch makes of the gradient of BatchNorm's weight."""
    op = torch.ops.aten.native_batch_norm_backward
    return op(gradient, X, WEIGHT, None, None, MEAN, SCALE, True, 0.5, [True] * 3)[1]


def exact() -> Tensor:
    """The same in float64, for a gradient of ones: the sum of (x - mean) scale over all but the channels."""
    x, mean, scale = (tensor.double() for tensor in (X, MEAN, SCALE))
    return (x - mean.reshape(1, 2, 1, 1)).sum((0, 2, 3)) * scale


@pytest.mark.parametrize(("layout", "is_inexact"), [("dense", False), ("expanded", True)])
def test_batch_norm_backward_in_bfloat16_is_wrong_for_an_expanded_gradient_only(layout, is_inexact):
    # The kernel for it rounds x - mean to bfloat16 before it adds (torch 2.13); sum().backward() gives such a gradient.
    off = ((weight_gradient(ONES[layout]).double() - exact()) / exact()).abs().max()
    assert bool(off > 0.5) == is_inexact
    rows = wrong(compared(lambda: weight_gradient(ONES[layout])))
    assert (not rows.empty) == is_inexact
