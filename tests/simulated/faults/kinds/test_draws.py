"""Tests random numbers that are drawn wrongly."""

import pytest
import torch

from nbkit import Fault
from tests.simulated.faults.spoilt import obstacle

SHAPE = (50, 40)


def drawn(device, op, kind, compute, size=None, calls=1):
    """Returns what a call gives on the device under a fault, which must fire and matter in the last one."""
    torch.manual_seed(0)
    with device.planted(Fault(op, kind, size, nth_call=calls)) as planted:
        results = [compute() for _ in range(calls)]
    assert planted.report()["status"].tolist() == ["changed"]
    return results


def noise():
    return torch.empty(SHAPE, device="sim").normal_()


def dropout():
    return torch.native_dropout(torch.ones(SHAPE, device="sim"), 0.25, True)


def test_normal_numbers_scatter_too_little_or_are_uniform(device):
    assert drawn(device, "normal_", "narrow_draws", noise)[0].std().item() == pytest.approx(0.8, rel=0.05)
    uniform = drawn(device, "normal_", "uniform_for_normal", noise)[0]
    assert uniform.std().item() == pytest.approx(1, rel=0.05)
    assert uniform.abs().max().item() < 3**0.5


def test_uniform_numbers_scatter_too_little(device):
    x = drawn(device, "uniform_", "narrow_draws", lambda: torch.empty(SHAPE, device="sim").uniform_())[0]
    assert (x.min().item(), x.max().item()) == pytest.approx((0.1, 0.9), abs=0.01)


def test_all_rows_are_alike(device):
    out, mask = drawn(device, "native_dropout", "repeated_random_row", dropout)[0]
    assert torch.equal(mask, mask[:1].expand_as(mask))
    torch.testing.assert_close(out, mask / 0.75)


def test_a_call_draws_what_the_first_one_drew(device):
    first, second, third = drawn(device, "normal_", "repeated_draws", noise, calls=3)
    assert torch.equal(first, third)
    assert not torch.equal(first, second)


def test_a_dropout_without_its_scale_or_rate(device):
    out, mask = drawn(device, "native_dropout", "unscaled_dropout", dropout)[0]
    assert torch.equal(out, mask.float())
    out, mask = drawn(device, "native_dropout", "wrong_rate", dropout)[0]
    assert mask.float().mean().item() == pytest.approx(0.75**2, abs=0.05)
    torch.testing.assert_close(out, mask / 0.75)


def test_what_they_cannot_befall(device):
    for kind, reason in (
        ("unscaled_dropout", "is no dropout"),
        ("repeated_random_row", "draws no random numbers"),
        ("repeated_draws", "draws no random numbers"),
        ("narrow_draws", "draws neither normal nor uniform"),
        ("uniform_for_normal", "draws no normal numbers"),
        ("wrong_rate", "draws no zeros and ones"),
    ):
        assert reason in obstacle(device, "exp", kind, torch.exp, torch.ones(3))
