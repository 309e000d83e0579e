"""Turns tensors into arrays and back, with the layout in memory that an op may depend on."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from nbkit.capture.raw.shards import local_shard
from nbkit.trace.captured_values import extent

Array = npt.NDArray[np.generic]
# numpy has none of them; each value of theirs is one of float32.
WIDENED = frozenset(
    {torch.bfloat16, torch.float8_e4m3fn, torch.float8_e4m3fnuz, torch.float8_e5m2, torch.float8_e5m2fnuz}
    | ({torch.float8_e8m0fnu} if hasattr(torch, "float8_e8m0fnu") else set())
)


class Geometry(NamedTuple):
    """Holds where the elements of a tensor lie in its storage; without strides it has no storage of its own."""

    shape: tuple[int, ...]
    stride: tuple[int, ...] | None
    offset: int
    dtype: torch.dtype
    is_conjugate: bool
    is_negative: bool

    def span(self) -> tuple[int, int]:
        """Returns the first byte and the one behind the last."""
        if self.stride is None or 0 in self.shape:
            return 0, 0
        end = self.offset + extent(self.shape, self.stride)
        return self.offset * self.dtype.itemsize, end * self.dtype.itemsize

    def is_dense(self) -> bool:
        """Returns whether it has each byte of its span, each once."""
        first, end = self.span()
        return self.stride is not None and end - first == math.prod(self.shape) * self.dtype.itemsize


def geometry_of(tensor: Tensor) -> Geometry:
    """Returns the geometry of a tensor of any layout."""
    shape = tuple(tensor.shape)
    if tensor.layout is not torch.strided or tensor.is_nested:
        return Geometry(shape, None, 0, tensor.dtype, False, False)
    flags = tensor.is_conj(), tensor.is_neg()
    return Geometry(shape, tensor.stride(), int(tensor.storage_offset()), tensor.dtype, *flags)


def array_of(tensor: Tensor) -> Array | None:
    """Returns the values of a tensor, which may share its memory; null of one that has no values numpy can hold."""
    tensor = local_shard(tensor).detach()
    if tensor.is_nested or tensor.is_quantized or tensor.is_meta:
        return None
    if tensor.layout is not torch.strided:
        tensor = tensor.to_dense()
    if tensor.dtype in WIDENED:
        tensor = tensor.float()
    elif tensor.dtype is torch.complex32:
        tensor = tensor.to(torch.complex64)
    array: Array = tensor.cpu().resolve_conj().resolve_neg().numpy()
    return array


def tensor_of(value: Any, geometry: Geometry, device: torch.device) -> Tensor:
    """Returns a new tensor of these values with a geometry; overlapping elements get memory of their own."""
    given = value if isinstance(value, Tensor) else torch.from_numpy(np.array(value))
    given = given.reshape(geometry.shape).to(device, geometry.dtype)
    if geometry.stride is None or given.numel() == 0:
        return given.clone()
    made = blank(geometry, device)
    fill(made, given)
    if 0 in geometry.stride and not bool(((made == given) | (made != made) & (given != given)).all()):
        return given.clone(memory_format=torch.contiguous_format)  # other values than those that were expanded
    return made


def fill(view: Tensor, values: Tensor) -> None:
    """Writes into a view; of what is expanded each element once, which copy_() refuses."""
    first = tuple(slice(0, 1) if step == 0 else slice(None) for step in view.stride())
    view[first].copy_(values[first])


def covers(pieces: Sequence[Geometry], view: Geometry) -> bool:
    """Returns whether each element of a view is in one of the pieces of its memory."""
    if any(piece.dtype != view.dtype or piece.stride is None for piece in pieces) or view.stride is None:
        return False
    size = max(geometry.span()[1] for geometry in (*pieces, view)) // view.dtype.itemsize
    memory = torch.zeros(size, dtype=torch.bool)
    for piece in pieces:
        fill(memory.as_strided(piece.shape, piece.stride or (), piece.offset), torch.ones(piece.shape))
    return bool(memory.as_strided(view.shape, view.stride, view.offset).all())


def blank(geometry: Geometry, device: torch.device) -> Tensor:
    """Returns a tensor with a geometry in new memory, of any content."""
    if geometry.stride is None:
        return torch.empty(geometry.shape, dtype=geometry.dtype, device=device)
    count = geometry.span()[1] // geometry.dtype.itemsize
    memory = torch.empty(max(count, geometry.offset), dtype=geometry.dtype, device=device)
    return memory.as_strided(geometry.shape, geometry.stride, geometry.offset)
