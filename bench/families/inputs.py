"""What the families of models share: types, random inputs."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

Loss = Callable[[], Tensor]
# A function that returns a model and what computes its loss.
Family = Callable[[], tuple[nn.Module, Loss]]
IDS = 97  # the size of every vocabulary


def ids(*shape: int) -> Tensor:
    return torch.randint(3, IDS, shape)


def drawn(*shape: int, like: nn.Module | None = None) -> Tensor:
    """Random numbers, in the dtype of a model's first parameter."""
    return torch.randn(*shape, dtype=torch.float32 if like is None else next(like.parameters()).dtype)
