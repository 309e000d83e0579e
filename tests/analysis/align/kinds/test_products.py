"""A product whose factors are rounded, as accelerators do it, is named; one that is wrong otherwise is not."""

import copy
import warnings
from contextlib import contextmanager

import numpy as np
import pytest
import torch
from torch import nn

import nbkit
from nbkit.analysis.align.kinds.precision.rounding import with_fewer_bits
from nbkit.capture.executions.torch_execution import torch_execution


def tf32(tensor, to_nearest=True):
    return torch.from_numpy(with_fewer_bits(tensor.detach().numpy(), 13, to_nearest=to_nearest))


def truncated(tensor):
    return tf32(tensor, to_nearest=False)


def bfloat16(tensor):
    return tensor.bfloat16().float()


def noisy(tensor):
    """Nothing that a format would do."""
    return tensor * (1 + 3e-4 * torch.sin(torch.arange(tensor.numel()).reshape(tensor.shape)))


@contextmanager
def products(change):
    """Has the CPU multiply matrices with other factors; an op that runs again does, too."""
    library = torch.library.Library("aten", "IMPL")

    def mm(left, right):
        return torch.bmm(change(left)[None], change(right)[None])[0]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that torch has a kernel already
        library.impl("mm", mm, "CPU")
        library.impl("addmm", lambda bias, left, right, beta=1, alpha=1: bias + mm(left, right), "CPU")
    try:
        yield
    finally:
        library._destroy()


def first_of(change):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(24, 32), nn.GELU(), nn.Linear(32, 16, bias=False), nn.GELU())
    x = torch.randn(9, 24)
    left = torch_execution(copy.deepcopy(model), (x,), {}, backward=False, kept_bytes=2**24)
    with products(change):
        trace = nbkit.opalign(left, model, inputs=(x,))
    assert trace.complete
    return trace.meta["first_divergence"]


@pytest.mark.parametrize(("change", "name"), [(tf32, "TF32"), (truncated, "TF32"), (bfloat16, "bfloat16")])
def test_factors_of_fewer_bits_are_named_at_the_first_product(change, name):
    first = first_of(change)
    assert (first["right"]["module"], first["kind"]) == ("0", "accumulation_dtype")
    assert f"The right one rounds what it multiplies to {name}: with that, they agree." in first["message"]
    assert first["kind_explained"] < 0.05


def test_other_factors_are_not():
    first = first_of(noisy)
    assert (first["right"]["module"], first["kind"]) == ("0", None)


def test_the_same_factors_have_no_divergence():
    assert first_of(lambda tensor: tensor) is None


@pytest.mark.parametrize("bits", [13, 16])
def test_bits_go_to_the_nearest_or_toward_zero(bits):
    values = np.random.default_rng(0).standard_normal((50, 3)).astype(np.float32)
    for order in (values, np.asfortranarray(values)):
        near, below = (with_fewer_bits(order, bits, to_nearest=to_nearest) for to_nearest in (True, False))
        step = 2.0 ** (np.floor(np.log2(np.abs(values))) - 23 + bits)
        assert np.abs(near - values).max(initial=0) <= step.max() / 2
        assert (np.abs(near - values) <= step / 2).all() and (np.abs(below) <= np.abs(values)).all()
        assert (np.abs(below - values) < step).all() and (near % step == 0).all() and (below % step == 0).all()
    assert np.array_equal(with_fewer_bits(values, 16), torch.from_numpy(values).bfloat16().float().numpy())
