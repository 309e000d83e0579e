"""The steps by name, and what they share: precisions, an optimizer, one step of it."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn

Step = Callable[[], Any]
STEPS: dict[str, Callable[[], Step]] = {}
# How many processes a step takes, where that is not one.
PROCESSES: dict[str, int] = {}


def right(name: str, processes: int = 1) -> Callable[[Callable[[], Step]], Callable[[], Step]]:
    """Registers a function that makes a step."""

    def register(make: Callable[[], Step]) -> Callable[[], Step]:
        STEPS[name] = make
        if processes > 1:
            PROCESSES[name] = processes
        return make

    return register


def precision(kind: str) -> AbstractContextManager[Any]:
    return torch.autocast("cpu", torch.bfloat16) if kind == "autocast" else nullcontext()


def trained(model: nn.Module, loss: Callable[[nn.Module], Tensor], kind: str = "float32", rate: float = 1e-2) -> Step:
    """A step of AdamW: forward, backward, update; `kind` is float32, bfloat16, autocast or compiled."""
    if kind == "bfloat16":
        model.to(torch.bfloat16)
    called = torch.compile(model, backend="aot_eager") if kind == "compiled" else model
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate)

    def step() -> float:
        optimizer.zero_grad()
        with precision(kind):
            value = loss(called)
        value.backward()
        optimizer.step()
        return float(value.detach())

    return step
