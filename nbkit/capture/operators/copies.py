"""Copies the inputs of a call as they lie in memory, and takes results and writes back to where the step has them."""

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor
from torch.autograd.grad_mode import _unsafe_preserve_version_counter as keeping_version

from nbkit.capture.raw.tensor_registry import PLAIN
from nbkit.capture.recorder.op_forms import loses_versions
from nbkit.capture.replay.copies import all_tensors, mapped_call
from nbkit.capture.replay.op_traits import OpTraits, written_tensors
from nbkit.trace.captured_values import extent

# Kernels may choose by the alignment of an address, up to a line of the cache.
ALIGNMENT = 64


class AliasError(Exception):
    """A result shares the memory of an input, which a result from elsewhere cannot."""


class CallCopies:
    """Holds copies of a call's arguments on `device`, null for where each is; `dtypes` says which change into which.

    Sizes, strides and alignment are kept, and inputs that share memory share it in the copies, where one is written to.
    """

    def __init__(
        self,
        traits: OpTraits,
        args: Any,
        kwargs: dict[str, Any],
        device: torch.device | None,
        dtypes: dict[torch.dtype, torch.dtype],
    ) -> None:
        self.traits, self.original, self.device, self.dtypes = traits, (args, kwargs), device, dtypes
        self.regions = _shared_regions(traits, args, kwargs)
        self.copied: dict[Any, Tensor] = {}  # the copy of each region, by its key
        memo: dict[int, Tensor] = {}
        self.args, self.kwargs = mapped_call(args, kwargs, self._changed, memo)
        self.originals = {id(memo[id(tensor)]): tensor for tensor in all_tensors(args, kwargs)}
        self.memo = memo

    def want_gradients(self) -> None:
        """Has the copies want gradients where the arguments do: a kernel may ask, before it notes what backward reads.

        The op must run below autograd, which would follow the copies otherwise.
        """
        for tensor in all_tensors(*self.original):
            if tensor.requires_grad:
                self.memo[id(tensor)].requires_grad_()

    def results(self, out: Any, target: torch.device | None, dtypes: Callable[[int, Tensor], torch.dtype]) -> Any:
        """Returns what the step gets for `out`, what the op returned for the copies.

        An argument that comes back is the step's own; `dtypes` says of the others by number what they are to be.
        Raises AliasError.
        """
        inputs = {_memory(tensor) for tensor in self.memo.values() if _has_memory(tensor)}
        number = -1

        def taken_back(value: Any) -> Any:
            nonlocal number
            if isinstance(value, list | tuple):
                return type(value)([taken_back(item) for item in value])
            if not isinstance(value, Tensor):
                return value
            number += 1
            own = self.originals.get(id(value))
            if own is not None:
                return own
            if _has_memory(value) and value.numel() and _memory(value) in inputs:
                raise AliasError
            return moved(value, target or value.device, dtypes(number, value))

        return taken_back(out)

    def write_back(self) -> None:
        """Gives the step's own tensors what the op has written to their copies."""
        # torch counts the writes of all other ops before they come to a dispatch mode.
        is_uncounted = loses_versions(self.traits.func)
        for tensor in written_tensors(self.traits, *self.original):
            copy = self.memo[id(tensor)]
            has_version = not tensor.is_inference()
            with keeping_version(tensor) if has_version else nullcontext():
                if copy.shape != tensor.shape:
                    tensor.resize_(copy.shape)
                tensor.copy_(copy)
            if is_uncounted and has_version:
                torch.autograd.graph.increment_version(tensor)

    def _changed(self, value: Any) -> Any:
        if isinstance(value, torch.dtype):
            return self.dtypes.get(value, value)
        if isinstance(value, torch.device):
            return self.device or value
        dtype = self.dtypes.get(value.dtype, value.dtype)
        device = self.device or value.device
        if value.layout is not torch.strided or value.is_quantized:
            return value.to(device, dtype, copy=True)
        key, start, span = self.regions.get(id(value)) or (id(value), *_region(value))
        if not value.numel():
            return torch.empty_strided(value.shape, value.stride(), dtype=dtype, device=device)
        if key not in self.copied:
            region = value.as_strided((span,), (1,), start)
            self.copied[key] = region.resolve_conj().resolve_neg().to(device, dtype, copy=True)
        return self.copied[key].as_strided(value.shape, value.stride(), value.storage_offset() - start)


def moved(value: Tensor, device: torch.device, dtype: torch.dtype) -> Tensor:
    """Returns a result on that device in that dtype, with the strides it has."""
    if value.device == device and value.dtype == dtype:
        return value
    if value.layout is not torch.strided or value.is_quantized or any(step == 0 for step in value.stride()):
        return value.to(device, dtype)
    return torch.empty_strided(value.shape, value.stride(), dtype=dtype, device=device).copy_(value)


def _region(value: Tensor) -> tuple[int, int]:
    """First element of the memory that holds a tensor, at an aligned address, and the number of elements."""
    offset = value.storage_offset()
    start = int(offset - offset % max(ALIGNMENT // value.element_size(), 1))
    return start, int(offset + extent(value.shape, value.stride()) - start)


def _shared_regions(traits: OpTraits, args: Any, kwargs: dict[str, Any]) -> dict[int, tuple[Any, int, int]]:
    """By id of each tensor that shares memory with one that is written to: a key, start and length of what they use.

    Raises Alias where they see the memory as different dtypes.
    """
    if not traits.is_writing:
        return {}
    tensors = {id(tensor): tensor for tensor in all_tensors(args, kwargs) if _has_memory(tensor) and tensor.numel()}
    by_memory: dict[int, list[Tensor]] = {}
    for tensor in tensors.values():
        by_memory.setdefault(_memory(tensor), []).append(tensor)
    regions: dict[int, tuple[Any, int, int]] = {}
    for memory, shared in by_memory.items():
        if len(shared) < 2:
            continue
        if len({(tensor.dtype, tensor.is_conj(), tensor.is_neg()) for tensor in shared}) > 1:
            raise AliasError
        spans = [_region(tensor) for tensor in shared]
        start, end = min(start for start, _ in spans), max(start + span for start, span in spans)
        regions |= {id(tensor): (("memory", memory), start, end - start) for tensor in shared}
    return regions


def _has_memory(tensor: Tensor) -> bool:
    return tensor.layout is torch.strided and not tensor.is_quantized


def _memory(tensor: Tensor) -> int:
    return int(tensor.untyped_storage()._cdata)


def is_plain(tensor: Tensor) -> bool:
    """Returns whether the values of a tensor can be copied: no subclass but that of a device."""
    return type(tensor) in PLAIN or not tensor.is_cpu
