"""Defines a probe: one call of one aten op, whose tensors are made when it is to run."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload

# An op with its arguments.
Call = partial[Any]


@dataclass(frozen=True)
class Place:
    """Says where and in which dtype the tensors of a probe are made."""

    device: torch.device
    dtype: torch.dtype

    def filled(self, *shape: int) -> Tensor:
        """Returns a tensor of halves, which every op here takes: logarithms, roots, probabilities."""
        return torch.full(shape, 0.5, device=self.device, dtype=self.dtype)

    def indices(self, below: int, *shape: int) -> Tensor:
        """Returns a tensor of indices from 0 to `below` - 1."""
        return torch.randint(below, shape, device=self.device)


@dataclass(frozen=True)
class Probe:
    """Stands for one call of `op`; `make` makes its tensors and returns the op with them."""

    op: OpOverload
    place: Place
    make: Callable[[Place], Call]
    is_overload: bool = False

    @property
    def name(self) -> str:
        """Returns what the op is called in the frame of calls: with its overload, if that is slower than others."""
        return str(self.op) if self.is_overload else f"aten.{self.op._opname}"
