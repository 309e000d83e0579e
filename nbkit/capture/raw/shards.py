"""Tells DTensors, which are spread over processes, from others, and what of them lies in this process."""

import sys
from collections.abc import Iterable
from typing import Any

from torch import Tensor
from torch._subclasses import FakeTensor
from torch.nn import Parameter

# Why what is told of a DTensor is not what its shape says.
LOCAL = "A DTensor is told by its local shard: shapes, bytes and values are those of this process alone."
_HOMES = ("torch.distributed.tensor", "torch.distributed._tensor")


def dtensor_type() -> type[Any] | None:
    """Returns the class; None where nobody has imported it, so that there can be no such tensor."""
    for home in _HOMES:
        known: type[Any] | None = getattr(sys.modules.get(home), "DTensor", None)
        if known is not None:
            return known
    return None


def has_dtensor_type(types: Any) -> bool:
    """Returns whether one of these classes is DTensor's; `types` are those that a dispatch mode is told."""
    known = dtensor_type() if types else None
    return known is not None and any(issubclass(kind, known) for kind in types)


def is_shape_question(types: Any) -> bool:
    """Returns whether a call inside an op on DTensors is torch's question for the shape of its result."""
    return any(issubclass(kind, FakeTensor) for kind in types)


def is_dtensor(tensor: Tensor) -> bool:
    """Returns whether a tensor is a DTensor."""
    known = dtensor_type()
    return known is not None and isinstance(tensor, known)


def has_dtensor(tensors: Iterable[Tensor]) -> bool:
    """Returns whether one of these tensors is a DTensor."""
    return any(map(is_dtensor, tensors))


def local_shard(tensor: Tensor) -> Tensor:
    """Returns the part of a DTensor that lies in this process, any other tensor as it is.

    Asking a DTensor itself for a value would make torch communicate, and wait for processes that ask for nothing.
    """
    if type(tensor) in (Tensor, Parameter):  # most are
        return tensor
    known = dtensor_type()
    if known is None or not isinstance(tensor, known):
        return tensor
    local: Tensor = tensor._local_tensor
    return local
