"""Tests an approximated exp: as wrong as the documentation says, in every op built on it."""

import pytest
import torch
import torch.nn.functional as F

from nbkit import Fault
from nbkit.simulated.faults.kinds.exponential import fast_exp
from tests.simulated.faults.spoilt import obstacle, spoilt

KIND = "approximate_exp"
# Largest relative error of each degree.
ERRORS = {1: 4e-2, 2: 2.3e-3, 3: 1.1e-4, 4: 4.1e-6}


@pytest.mark.parametrize(("degree", "largest"), ERRORS.items())
def test_the_error_of_each_degree(degree, largest):
    x = torch.linspace(-50, 50, 20_001, dtype=torch.float64)
    error = ((fast_exp(x, degree) - x.exp()) / x.exp()).abs().max().item()
    assert 0.7 * largest < error <= largest


def test_the_ends_of_the_range():
    ends = torch.tensor([-torch.inf, torch.inf, torch.nan, -1000.0], dtype=torch.float64)
    assert fast_exp(ends, 2)[:2].tolist() == [0.0, torch.inf]
    assert fast_exp(ends, 2)[2].isnan()
    assert fast_exp(ends, 2)[3].item() == 0.0


@pytest.mark.parametrize(
    "compute",
    [torch.exp, torch.sigmoid, torch.tanh, F.silu, lambda x: x.softmax(0), lambda x: x.log_softmax(1)],
)
def test_ops_built_on_it_are_wrong_by_that_order_and_no_more(device, compute):
    ops = "exp, sigmoid, tanh, silu, _softmax, _log_softmax"
    x = torch.randn(20, 7)
    expected, coarse = spoilt(device, Fault(ops, KIND, 2), compute, x)
    _, fine = spoilt(device, Fault(ops, KIND, 5), compute, x)
    assert 1e-4 < (coarse - expected).abs().max() / expected.abs().max() < 1e-2
    torch.testing.assert_close(fine, expected, rtol=1e-5, atol=1e-6)


def test_in_place_too(device):
    expected, actual = spoilt(device, Fault("sigmoid_", KIND), lambda x: x.clone().sigmoid_(), torch.randn(20))
    torch.testing.assert_close(actual, expected, rtol=3e-3, atol=0)


def test_other_ops_are_left_alone(device):
    assert "aten.cos.default is not built on exp; _log_softmax," in obstacle(
        device, "cos", KIND, torch.cos, torch.ones(2)
    )
