"""Shadows: for every memory that a step touches another one, in the precision and on the device of the other run.

A tensor's shadow is a view of the shadow of its storage with the tensor's own sizes, strides and offset, so that views,
in-place writes, saved tensors, detached ones and the optimizer's state alias as they do in the step. A shadow lives as
long as the storage that it belongs to.
"""

from collections import Counter
from typing import Any, NamedTuple
from weakref import ref

import torch
from torch import Tensor
from torch._subclasses import FakeTensor

from nbkit.capture.diff.shadow.target import Target

PARTS = {torch.complex128: torch.float64, torch.complex64: torch.float32, torch.complex32: torch.float16}
OTHER_DTYPE = "memory seen as another dtype"


class Shadow(NamedTuple):
    """The shadow of one storage: all of its elements in a line, and the dtype that the step sees them as."""

    held: Any  # weak reference to the storage
    line: Tensor
    dtype: torch.dtype


class Shadows:
    """The shadows of a step, by storage; `restarts` counts by reason where one was made anew from the step's values."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.shadows: dict[int, Shadow] = {}
        self.restarts: Counter[str] = Counter()

    def of(self, tensor: Tensor) -> Tensor:
        """The shadow of a tensor; it begins with the tensor's values where its memory has none yet."""
        storage = tensor.untyped_storage()
        known = self._known(storage)
        if known is None:
            known = self._keep(storage, self._line(tensor, storage), tensor.dtype)
        elif known.dtype is not tensor.dtype:
            known = self._as_dtype(known, tensor, storage)
        if known.line.numel() < storage.nbytes() // tensor.element_size():
            # resize_() has made the storage larger.
            line = self._line(tensor, storage)
            line[: known.line.numel()] = known.line
            known = self._keep(storage, line, tensor.dtype)
        return _like(known.line, tensor)

    def adopt(self, tensor: Tensor, result: Tensor) -> None:
        """Let `result` be the shadow of a tensor on memory that an op has just made; nobody else may write to it."""
        storage = tensor.untyped_storage()
        numel = storage.nbytes() // tensor.element_size()
        dtype = self.target.dtype_of(tensor.dtype)
        fits = (
            result.numel() == numel
            and result.dtype is dtype
            and result.stride() == tensor.stride()
            and result.untyped_storage().nbytes() == numel * result.element_size()
        )
        if fits and not (tensor.is_conj() or tensor.is_neg() or result.is_conj() or result.is_neg()):
            self._keep(storage, result.as_strided((numel,), (1,), 0), tensor.dtype)
            return
        line = torch.zeros(numel, dtype=dtype, device=self.target.device)
        self._keep(storage, line, tensor.dtype)
        _like(line, tensor).copy_(result)

    def renew(self, tensor: Tensor) -> None:
        """Give the shadow of a tensor the step's values."""
        if is_shadowed(tensor) and self._known(tensor.untyped_storage()) is not None:
            self.of(tensor).copy_(tensor)

    def forget(self, tensor: Tensor) -> None:
        """Let the shadow of a tensor's whole memory begin anew at its next use."""
        if tensor.layout is torch.strided:
            self.shadows.pop(id(tensor.untyped_storage()), None)

    def _known(self, storage: torch.UntypedStorage) -> Shadow | None:
        known = self.shadows.get(id(storage))
        return known if known is not None and known.held() is storage else None

    def _keep(self, storage: torch.UntypedStorage, line: Tensor, dtype: torch.dtype) -> Shadow:
        shadows, key = self.shadows, id(storage)

        def let_go(dead: Any) -> None:
            # Another storage may have the id by now.
            if (shadow := shadows.get(key)) is not None and shadow.held is dead:
                del shadows[key]

        made = shadows[key] = Shadow(ref(storage, let_go), line, dtype)
        return made

    def _line(self, tensor: Tensor, storage: torch.UntypedStorage) -> Tensor:
        """All elements of a tensor's memory, as the step has them now."""
        plain = tensor.conj() if tensor.is_conj() else tensor
        plain = torch._neg_view(plain) if plain.is_neg() else plain
        line = plain.detach().as_strided((storage.nbytes() // tensor.element_size(),), (1,), 0)
        return self.target.bring(line, copy=True)

    def _as_dtype(self, known: Shadow, tensor: Tensor, storage: torch.UntypedStorage) -> Shadow:
        """The shadow of memory that was of another dtype: the parts of complex numbers are seen, others begin anew."""
        dtype = self.target.dtype_of(tensor.dtype)
        if PARTS.get(known.line.dtype) is dtype and PARTS.get(known.dtype) is tensor.dtype:
            return Shadow(known.held, torch.view_as_real(known.line).reshape(-1), tensor.dtype)
        if PARTS.get(dtype) is known.line.dtype and PARTS.get(tensor.dtype) is known.dtype:
            return Shadow(known.held, torch.view_as_complex(known.line.reshape(-1, 2)), tensor.dtype)
        self.restarts[OTHER_DTYPE] += 1
        return self._keep(storage, self._line(tensor, storage), tensor.dtype)


def _like(line: Tensor, tensor: Tensor) -> Tensor:
    """The part of a line that a tensor is of its memory."""
    part = line.as_strided(tensor.size(), tensor.stride(), tensor.storage_offset())
    part = part.conj() if tensor.is_conj() else part
    return torch._neg_view(part) if tensor.is_neg() else part


def is_shadowed(tensor: Tensor) -> bool:
    """Whether a tensor has a shadow: numbers that rounding can change, in plain memory."""
    return (
        (tensor.is_floating_point() or tensor.is_complex())
        and tensor.layout is torch.strided
        and not (tensor.is_quantized or tensor.is_nested or is_valueless(tensor))
    )


def is_valueless(tensor: Tensor) -> bool:
    """Whether a tensor has sizes only."""
    return tensor.is_meta or isinstance(tensor, FakeTensor)
