"""Tests numbers that an op ignores, scales of attention, GELU's other form, gradients as they are, ties."""

import pytest
import torch
import torch.nn.functional as F

from nbkit import Fault
from tests.simulated.faults.spoilt import obstacle, spoilt

X, Y = torch.randn(4, 5), torch.randn(4, 5)


@pytest.mark.parametrize(
    ("op", "compute", "instead"),
    [
        ("add", lambda x, y: torch.add(x, y, alpha=3), lambda x, y: x + y),
        ("addcmul", lambda x, y: torch.addcmul(x, x, y, value=0.5), lambda x, y: x + x * y),
        ("lerp", lambda x, y: torch.lerp(x, y, 0.25), lambda x, y: y),
        ("addmm", lambda x, y: torch.addmm(x[:, :4], x, y.T, beta=2, alpha=3), lambda x, y: x[:, :4] + x @ y.T),
    ],
)
def test_a_factor_is_ignored(device, op, compute, instead):
    _, actual = spoilt(device, Fault(op, "ignored_factor"), compute, X, Y)
    torch.testing.assert_close(actual, instead(X, Y))


def test_attention_has_another_scale(device):
    q = torch.randn(1, 2, 3, 16)
    attend = F.scaled_dot_product_attention
    _, actual = spoilt(device, Fault("_scaled_dot_product_flash*", "wrong_scale", 2.0), lambda q: attend(q, q, q), q)
    torch.testing.assert_close(actual, attend(q, q, q, scale=0.5))


def test_gelu_has_the_other_form(device):
    _, actual = spoilt(device, Fault("gelu", "other_gelu"), F.gelu, X)
    assert torch.equal(actual, F.gelu(X, approximate="tanh"))


def test_a_gradient_goes_through_as_it_is(device):
    x = X.to("sim").requires_grad_()
    with device.planted(Fault("tanh_backward", "straight_through_gradient")):
        (gradient,) = torch.autograd.grad(x.tanh(), x, Y.to("sim"))
    assert torch.equal(gradient.cpu(), Y)


def test_ties_are_decided_otherwise(device):
    x = torch.tensor([0.0, 1.0, 2.0])
    _, actual = spoilt(device, Fault("le", "strict_comparison"), lambda x: x <= 1, x)
    assert actual.tolist() == [True, False, False]


def test_what_they_cannot_befall(device):
    for kind, reason in (
        ("ignored_factor", "multiplies by no number"),
        ("wrong_scale", "is no attention"),
        ("other_gelu", "is no GELU"),
        ("straight_through_gradient", "is no backward op"),
        ("strict_comparison", "does not compare for order"),
    ):
        assert reason in obstacle(device, "exp", kind, torch.exp, X)
