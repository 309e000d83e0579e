"""Defines what the right training steps beside this file share, and collects them in CASES."""

from collections.abc import Callable
from itertools import pairwise

import torch
from torch import Tensor, nn

Steps = Callable[[int], object]
CASES: dict[str, Callable[[], Steps]] = {}


def case(make: Callable[[], Steps]) -> Callable[[], Steps]:
    CASES[make.__name__] = make
    return make


def mlp(*sizes: int) -> nn.Sequential:
    layers = [[nn.Linear(one, two), nn.Tanh()] for one, two in pairwise(sizes)]
    return nn.Sequential(*[layer for pair in layers for layer in pair][:-1])


def batch(size: int = 8) -> Tensor:
    return torch.randn(4, size)


class Net(nn.Module):
    """An encoder and a head; a further head is computed, and not used."""

    def __init__(self, has_unused: bool = False) -> None:
        super().__init__()
        self.encoder, self.head = mlp(8, 8, 8), nn.Linear(8, 2)
        self.unused = nn.Linear(8, 2) if has_unused else None

    def forward(self, x: Tensor) -> Tensor:
        z = self.encoder(x)
        if self.unused is not None:
            self.unused(z)
        return self.head(z)


def trains(model: nn.Module, optimizer: torch.optim.Optimizer) -> Steps:
    def step(_: int) -> None:
        optimizer.zero_grad()
        model(batch()).square().mean().backward()
        optimizer.step()

    return step
