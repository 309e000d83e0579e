"""Tests the wrong axis: only for odd sizes, and with the shape of the correct result."""

import pytest
import torch

from nbkit import Fault
from tests.simulated.faults.spoilt import obstacle, spoilt

KIND = "wrong_axis"


def test_a_square_is_reduced_along_the_other_axis(device):
    x = torch.arange(9.0).view(3, 3)
    _, actual = spoilt(device, Fault("sum", KIND), lambda x: x.sum(1), x)
    assert actual.tolist() == x.sum(0).tolist()


@pytest.mark.parametrize(
    "compute",
    [
        lambda x: x.softmax(-1),
        lambda x: x.mean(0, keepdim=True),
        lambda x: x.amax(1),
        lambda x: x.cumsum(1),
        lambda x: x.max(1).values,
        lambda x: x.logsumexp(1),
    ],
)
def test_shapes_stay_those_of_the_right_result(device, compute):
    # Composites reach the device as their parts: one of them reduces.
    ops = "_softmax, mean, amax, cumsum, max, logsumexp"
    expected, actual = spoilt(device, Fault(ops, KIND), compute, torch.arange(15.0).view(3, 5))
    assert actual.shape == expected.shape
    assert not torch.equal(actual, expected)


def test_even_sizes_are_right(device):
    x = torch.randn(3, 4)
    with device.planted(Fault("sum", KIND)) as planted:
        assert torch.equal(x.to("sim").sum(1).cpu(), x.sum(1))
    assert planted.report()[["status", "message"]].iloc[0].tolist() == [
        "not reached",
        "no call that was due had an odd size along the reduced axis",
    ]


def test_what_has_no_other_axis_is_left_alone(device):
    assert "leaves no other axis" in obstacle(device, "sum", KIND, lambda x: x.sum(0), torch.ones(3))
    assert "has no argument dim" in obstacle(device, "exp", KIND, torch.exp, torch.ones(3, 3))
