"""Tests writes that never arrive, and results of the call before."""

import torch

from nbkit import Fault
from tests.simulated.faults.spoilt import obstacle, spoilt


def test_an_in_place_write_is_dropped(device):
    _, actual = spoilt(device, Fault("add_", "dropped_write"), lambda x: x.clone().add_(1), torch.ones(2))
    assert actual.tolist() == [1.0, 1.0]


def test_a_write_into_out_is_dropped(device):
    fault = Fault("exp", "dropped_write")
    _, actual = spoilt(device, fault, lambda x: torch.exp(x, out=torch.full_like(x, 7.0)), torch.ones(2))
    assert actual.tolist() == [7.0, 7.0]


def test_a_dropped_write_through_a_view_spares_the_rest(device):
    x = torch.zeros(4, device="sim")
    with device.planted(Fault("fill_", "dropped_write", nth_call=1)):
        x[:2].fill_(1)
        x[2:].fill_(2)
    assert x.tolist() == [0.0, 0.0, 2.0, 2.0]


def test_an_op_that_writes_nothing_is_left_alone(device):
    message = obstacle(device, "add", "dropped_write", lambda x: x + 1, torch.ones(2))
    assert message == "aten.add.Tensor writes into none of its inputs"


def test_each_result_is_that_of_the_call_before(device):
    x = torch.ones(2, device="sim")
    with device.planted(Fault("mul", "stale_result")) as planted:
        results = [(x * factor)[0].item() for factor in (2, 3, 4)]
        assert (x[:1] * 5).item() == 5.0
    assert results == [2.0, 2.0, 3.0]
    assert planted.report()[["calls", "fired"]].to_numpy().tolist() == [[4, 2]]


def test_one_stale_result(device):
    x = torch.ones(2, device="sim")
    with device.planted(Fault("mul", "stale_result", nth_call=3)):
        assert [(x * factor)[0].item() for factor in (2, 3, 4, 5)] == [2.0, 3.0, 3.0, 5.0]


def test_a_buffer_that_nobody_cleared(device):
    x = torch.ones(2, device="sim")
    with device.planted(Fault("mul", "unzeroed_buffer")):
        assert [(x * factor)[0].item() for factor in (2, 3, 4)] == [2.0, 5.0, 7.0]
    message = obstacle(device, "argmax", "unzeroed_buffer", torch.argmax, torch.ones(2, 3))
    assert message == "aten.argmax.default has no floating-point result"
