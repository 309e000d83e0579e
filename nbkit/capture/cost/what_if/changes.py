"""Holds what is to be other in a step, and says it in words."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

import torch
from torch.nn.attention import SDPBackend

from nbkit.capture.cost.what_if.sizes import Size
from nbkit.errors import OptionError, nearest

Attention = Literal["math", "flash", "efficient", "cudnn"]
BACKENDS = {
    "math": SDPBackend.MATH,
    "flash": SDPBackend.FLASH_ATTENTION,
    "efficient": SDPBackend.EFFICIENT_ATTENTION,
    "cudnn": SDPBackend.CUDNN_ATTENTION,
}


@dataclass(frozen=True)
class Changes:
    """Holds the changes of a what-if question; None where nothing is to be other. Raises OptionError."""

    batch_size: Size | None = None
    sequence_length: Size | None = None
    dtype: torch.dtype | None = None
    checkpoint: str | Sequence[str] | None = None
    sdpa: Attention | None = None
    optimizer: Callable[..., Any] | None = None
    foreach: bool | None = None
    tensor_parallel: int | None = None
    fully_sharded: int | None = None

    def __post_init__(self) -> None:
        if self.dtype is not None and not (isinstance(self.dtype, torch.dtype) and self.dtype.is_floating_point):
            raise OptionError(f"dtype is {self.dtype!r}; give a floating dtype such as torch.bfloat16.")
        if self.sdpa is not None and self.sdpa not in get_args(Attention):
            raise OptionError(f"There is no SDPA backend {self.sdpa!r}; {nearest(str(self.sdpa), BACKENDS)}")
        if self.optimizer is not None and not callable(self.optimizer):
            raise OptionError(
                f"optimizer is {type(self.optimizer).__name__}; give a class such as torch.optim.SGD, or a function "
                "that makes an optimizer of parameter groups."
            )
        for name in ("tensor_parallel", "fully_sharded"):
            degree = getattr(self, name)
            if degree is not None and (not isinstance(degree, int) or isinstance(degree, bool) or degree < 2):
                raise OptionError(f"{name} is {degree!r}; give the number of ranks, from 2 up.")

    @property
    def resizes(self) -> bool:
        """Returns whether inputs are to have other sizes."""
        return self.batch_size is not None or self.sequence_length is not None

    def __str__(self) -> str:
        given = {each.name: getattr(self, each.name) for each in fields(self)}
        return ", ".join(f"{name}={_text(value)}" for name, value in given.items() if value is not None)


def _text(value: Any) -> str:
    if isinstance(value, type):
        return value.__name__
    return getattr(value, "__qualname__", None) or repr(value)
