"""Tests an error of a given size, and flushed denormals."""

import pytest
import torch

from nbkit import Fault
from tests.simulated.faults.spoilt import spoilt


@pytest.mark.parametrize("size", [1e-5, 1e-2, -0.5])
def test_every_element_is_off_by_the_share(device, size):
    expected, actual = spoilt(device, Fault("mul", size=size), lambda x: x * 2, torch.randn(50))
    torch.testing.assert_close(actual, (expected.double() * (1 + size)).float(), rtol=0, atol=0)


def test_bfloat16_and_complex_results(device):
    for dtype in (torch.bfloat16, torch.complex64):
        expected, actual = spoilt(device, Fault("mul", size=1.0), lambda x: x * 1, torch.ones(3, dtype=dtype))
        assert actual.tolist() == (expected * 2).tolist()


def test_denormals_become_zeros_of_their_sign_and_nothing_else_changes(device):
    x = torch.tensor([1e-39, -1e-39, 1.2e-38, 1.0, torch.inf, torch.nan])
    _, actual = spoilt(device, Fault("mul", "flush_denormals"), lambda x: x * 1, x)
    assert actual[:2].tolist() == [0.0, -0.0]
    assert actual[:2].signbit().tolist() == [False, True]
    assert torch.equal(actual[2:5], x[2:5])
    assert actual[5].isnan()
    _, actual = spoilt(device, Fault("mul", "flush_denormals"), lambda x: x * 1, torch.tensor([1e-39 + 1j, 1 + 1e-39j]))
    assert actual.tolist() == [1j, 1 + 0j]


def test_denormals_of_half_precision(device):
    _, actual = spoilt(device, Fault("mul", "flush_denormals"), lambda x: x * 1, torch.tensor([3e-5, 7e-5]).half())
    assert actual.tolist() == [0.0, torch.tensor(7e-5).half().item()]
