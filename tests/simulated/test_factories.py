"""Tests tensors made on the simulated device: factories, random numbers, default device."""

import pytest
import torch
from torch import nn


@pytest.mark.parametrize(
    "make",
    [
        lambda device: torch.zeros(2, device=device),
        lambda device: torch.tensor([1.0, 2.0], device=device),
        lambda device: torch.as_tensor([1, 2], device=device),
        lambda device: torch.arange(1, 7, 2, device=device),
        lambda device: torch.linspace(0, 1, 5, dtype=torch.float64, device=device),
        lambda device: torch.eye(3, device=device),
        lambda device: torch.full((2, 2), 3, device=device),
        lambda device: torch.tril_indices(3, 3, device=device),
        lambda device: torch.ones(2, 3, device=device).new_full((2,), 7.0),
        lambda device: torch.ones_like(torch.zeros(2, 3, device=device).t()),
        lambda device: torch.empty(2, 3, 4, 4, device=device, memory_format=torch.channels_last).fill_(1),
    ],
)
def test_factories_give_what_they_give_on_the_cpu(make):
    made, expected = make("sim"), make("cpu")
    assert str(made.device) == "sim:0"
    assert (made.dtype, made.stride()) == (expected.dtype, expected.stride())
    assert torch.equal(made.cpu(), expected)


@pytest.mark.parametrize("draw", [torch.randn, torch.rand, lambda n, **options: torch.randperm(n, **options)])
def test_random_numbers_are_those_of_the_cpu(draw):
    torch.manual_seed(3)
    drawn = draw(5, device="sim").cpu()
    assert torch.equal(drawn, draw(5, generator=torch.Generator().manual_seed(3)))


def test_a_generator_of_the_cpu_serves(device):
    drawn = torch.randn(5, generator=torch.Generator().manual_seed(3), device="sim")
    assert torch.equal(drawn.cpu(), torch.randn(5, generator=torch.Generator().manual_seed(3)))


def test_fork_rng_restores_the_state(device):
    before = torch.get_rng_state()
    with torch.random.fork_rng(device_type="sim"):
        torch.randn(2, device="sim")
        assert not torch.equal(torch.get_rng_state(), before)
    assert torch.equal(torch.get_rng_state(), before)


def test_modules_can_be_made_there():
    with torch.device("sim"):
        model = nn.Linear(2, 3)
    assert {str(parameter.device) for parameter in model.parameters()} == {"sim:0"}
    assert isinstance(model.weight, nn.Parameter)
