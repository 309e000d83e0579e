"""Tests numbers that are cut, saturated, flushed, noisy, or have a bit or the sign flipped."""

import pytest
import torch

from nbkit import Fault
from tests.simulated.faults.spoilt import obstacle, spoilt


def made(device, kind, values, size=None, dtype=torch.float32):
    """Returns what a product with 1 gives under a fault."""
    return spoilt(device, Fault("mul", kind, size), lambda x: x * 1, torch.tensor(values, dtype=dtype))[1]


def test_mantissas_are_cut_towards_zero(device):
    assert made(device, "truncated_mantissa", [1.75, -1.875, 6.9, torch.inf], 1).tolist() == [1.5, -1.5, 6.0, torch.inf]
    assert made(device, "truncated_mantissa", [1 + 1.5j], 0, torch.complex64).tolist() == [1 + 1j]


@pytest.mark.parametrize(
    ("op", "compute"),
    [
        ("div", lambda x: 2.0 / x * x / x),
        ("reciprocal", torch.reciprocal),
        ("rsqrt", torch.rsqrt),
        ("sqrt", torch.sqrt),
    ],
)
def test_reciprocals_of_few_bits_are_off_by_their_last_bit(device, op, compute):
    fault = Fault(op, "approximate_reciprocal", 6, nth_call=1)
    expected, actual = spoilt(device, fault, compute, torch.linspace(0.3, 5, 100))
    error = ((actual - expected) / expected).abs().max().item()
    assert 2**-8 < error <= 2**-6


def test_numbers_end_or_vanish_at_a_multiple_of_their_root_mean_square(device):
    values = [1.0, -1.0, 7.0, 1e-4, 0.0]  # their root mean square is 3.19
    assert made(device, "saturated_result", values, 1.0)[2].item() == pytest.approx(3.194, rel=1e-3)
    assert made(device, "flushed_small", values, 0.1).tolist() == [1.0, -1.0, 7.0, 0.0, 0.0]
    largest = torch.finfo(torch.float32).max
    assert made(device, "lost_infinity", [1.0, -torch.inf]).tolist() == [1.0, -largest]


def test_one_bit_of_the_middle_element_is_flipped(device):
    for dtype in (torch.float32, torch.bfloat16, torch.float64):
        assert made(device, "flipped_bit", [1.0, 1.0, 1.0], 2, dtype).tolist() == [1.0, 1.25, 1.0]


def test_the_lowest_bit_can_be_flipped(device):
    assert made(device, "flipped_bit", [1.0, 1.0, 1.0], 7, torch.bfloat16).tolist() == [1.0, 1 + 2**-7, 1.0]


def test_noise_offset_and_sign(device):
    assert made(device, "wrong_sign", [1.0, -2.0]).tolist() == [-1.0, 2.0]
    assert made(device, "constant_offset", [1.0, -1.0], 0.5).tolist() == [1.5, -0.5]
    noise = made(device, "added_noise", [3.0] * 1000, 0.1) - 3
    assert noise.std().item() == pytest.approx(0.3, rel=0.1)
    assert abs(noise.mean().item()) < 0.04


def test_what_they_cannot_befall(device):
    assert "needs no reciprocal" in obstacle(device, "exp", "approximate_reciprocal", torch.exp, torch.ones(2))
    assert "no floating-point result" in obstacle(device, "mul", "wrong_sign", lambda x: x * 1, torch.ones(2).long())
