"""Tests a wrong epsilon: the op with another value of its argument, by torch itself."""

import torch
import torch.nn.functional as F

from nbkit import Fault
from tests.simulated.faults.spoilt import obstacle, spoilt

KIND = "wrong_epsilon"


def test_layer_norm_takes_a_thousand_times_its_epsilon(device):
    x = torch.randn(4, 8)
    _, actual = spoilt(device, Fault("native_layer_norm", KIND), lambda x: F.layer_norm(x, (8,), eps=1e-5), x)
    assert torch.equal(actual, F.layer_norm(x, (8,), eps=1e-5 * 1000))


def test_batch_norm_updates_its_statistics_once(device):
    x, mean, var = torch.randn(6, 3), torch.zeros(3), torch.ones(3)
    moved = mean.to("sim"), var.to("sim")
    with device.planted(Fault("native_batch_norm", KIND, 10.0)) as planted:
        actual = F.batch_norm(x.to("sim"), *moved, training=True)
    assert torch.equal(actual.cpu(), F.batch_norm(x, mean, var, training=True, eps=1e-5 * 10))
    assert torch.equal(moved[0].cpu(), mean)
    assert planted.report()["changed"].tolist() == [1]


def test_an_add_of_a_small_number_adds_more(device):
    _, actual = spoilt(device, Fault("add", KIND, 10.0), lambda x: x + 1e-3, torch.zeros(2, dtype=torch.float64))
    assert actual.tolist() == [0.01, 0.01]


def test_the_epsilon_of_adamw(device):
    weights = []
    for fault in ([], [Fault("add_", KIND, 1e8)]):
        weight = torch.nn.Parameter(torch.zeros(2, device="sim"))
        weight.grad = torch.ones(2, device="sim")
        with device.planted(*fault):
            torch.optim.AdamW([weight], lr=0.5, foreach=False).step()
        weights.append(weight[0].item())
    torch.testing.assert_close(weights, [-0.5, -0.25])


def test_ops_without_an_epsilon_are_left_alone(device):
    assert obstacle(device, "add", KIND, lambda x: x + 1.0, torch.ones(2)).startswith("aten.add.Tensor has no epsilon")
