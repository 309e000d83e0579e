"""WKV of the RWKV-4 sample against its definition, written out in float64, and its numerical range."""

import pytest
import torch
from torch.testing import assert_close
from torch.utils._python_dispatch import TorchDispatchMode

from sample_models.rwkv4 import LayerState, wkv, wkv_step


def wkv_by_definition(decay, bonus, k, v):
    """A softmax over the exponents of positions 0..t, for each t."""
    outs = []
    for t in range(k.shape[1]):
        distances = torch.arange(t - 1, -1, -1, dtype=k.dtype)
        exponents = torch.cat((k[:, :t] - distances[:, None] * decay, k[:, t : t + 1] + bonus), dim=1)
        outs.append((exponents.softmax(dim=1) * v[:, : t + 1]).sum(dim=1))
    return torch.stack(outs, dim=1)


def wkv_by_recurrence(decay, bonus, k, v):
    nothing = torch.zeros_like(k[:, :1])
    state = LayerState(nothing, nothing, torch.stack((nothing, nothing)), torch.full_like(nothing, -torch.inf))
    steps = zip(k.split(1, dim=1), v.split(1, dim=1), strict=True)
    return torch.cat([wkv_step(decay, bonus, k_now, v_now, state) for k_now, v_now in steps], dim=1)


def draw(length, spread=1.0):
    """Leaves decay (4,), bonus (4,), k and v (2, length, 4)."""
    generator = torch.Generator().manual_seed(length)
    decay, bonus = torch.rand(4, generator=generator), torch.randn(4, generator=generator)
    k, v = torch.randn(2, 2, length, 4, generator=generator)
    return [leaf.requires_grad_() for leaf in (decay, bonus, k * spread, v)]


both_forms = pytest.mark.parametrize("form", [wkv, wkv_by_recurrence])


def gradients(function, leaves, weights):
    return torch.autograd.grad((function(*leaves) * weights).sum(), leaves, materialize_grads=True)


@both_forms
@pytest.mark.parametrize("length", [1, 2, 3, 4, 5, 8, 9, 33, 100])
def test_values_and_gradients_are_those_of_the_definition(form, length):
    leaves = draw(length)
    wide = [leaf.detach().double().requires_grad_() for leaf in leaves]
    assert_close(form(*leaves).double(), wkv_by_definition(*wide), rtol=1e-5, atol=1e-6)
    weights = torch.randn(2, length, 4, generator=torch.Generator().manual_seed(0))
    actual, expected = gradients(form, leaves, weights), gradients(wkv_by_definition, wide, weights.double())
    for left, right in zip(actual, expected, strict=True):
        assert_close(left.double(), right, rtol=1e-5, atol=1e-5)


def test_analytic_gradient_is_the_numerical_one():
    leaves = [leaf.detach().double().requires_grad_() for leaf in draw(6)]
    assert torch.autograd.gradcheck(wkv, leaves)


@both_forms
@pytest.mark.parametrize("spread", [100.0, 1e4, 1e6])
def test_large_keys_do_not_overflow(form, spread):
    leaves = draw(40, spread)
    wide = [leaf.detach().double().requires_grad_() for leaf in leaves]
    assert_close(form(*leaves).double(), wkv_by_definition(*wide), rtol=1e-5, atol=1e-5)
    weights = torch.full((2, 40, 4), 1 / 40)
    actual, expected = gradients(form, leaves, weights), gradients(wkv_by_definition, wide, weights.double())
    for left, right in zip(actual, expected, strict=True):
        assert_close(left.double(), right, rtol=1e-4, atol=1e-5)


@both_forms
@pytest.mark.parametrize("offset", [-1e4, 1e4])
def test_an_offset_of_all_keys_changes_nothing(form, offset):
    decay, bonus, k, v = draw(40)
    k = (k * 64).round() / 64  # so that float32 can hold k + offset exactly
    assert_close(form(decay, bonus, k + offset, v), form(decay, bonus, k, v), rtol=1e-5, atol=1e-6)


def test_a_later_position_has_no_influence():
    decay, bonus, k, v = draw(20)
    changed = torch.cat((v[:, :12], v[:, 12:] + 1), dim=1)
    before, after = wkv(decay, bonus, k, v), wkv(decay, bonus, k, changed)
    assert torch.equal(before[:, :12], after[:, :12])
    assert (before[:, 12:] != after[:, 12:]).all()


class CountOps(TorchDispatchMode):
    calls = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.calls += 1
        return func(*args, **(kwargs or {}))


def test_number_of_ops_grows_with_the_logarithm_of_the_length():
    counts = []
    for length in (17, 33, 65):
        with CountOps() as mode:
            wkv(*draw(length))
        counts.append(mode.calls)
    assert counts[2] - counts[1] == counts[1] - counts[0] < 25
