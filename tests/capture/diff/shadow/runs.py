"""Runs beside a shadow, and the true run in float64 that the shadow must equal."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from typing import Any

import torch
from torch import Tensor, nn

import nbkit
from nbkit import Trace
from nbkit.capture.replay.isolated import isolated


@contextmanager
def shadowed(against: str = "cpu:float64", **options: Any) -> Iterator[Callable[[Tensor], Tensor]]:
    """Inside, what gives the shadow of a tensor, as a copy."""
    verb = nbkit.opdiff(against=against, **options)

    def shadow_of(tensor: Tensor) -> Tensor:
        with isolated():
            return verb.observers[0].against.mode.shadows.of(tensor).clone()

    with verb:
        yield shadow_of


def against(step: Callable[[], Any], other: str = "cpu:float64", **options: Any) -> Trace:
    """The trace of one run of `step` beside its shadow."""
    with nbkit.opdiff(against=other, **options) as trace:
        step()
    return trace


def widened(module: nn.Module) -> nn.Module:
    """A copy of a module in float64."""
    return deepcopy(module).double()


def same(shadow: Tensor, true: Tensor | None) -> bool:
    """Whether a shadow is the true float64 result, but for the order in which kernels sum."""
    assert true is not None and shadow.dtype is torch.float64
    return torch.allclose(shadow, true.detach().double(), rtol=1e-11, atol=1e-13)
