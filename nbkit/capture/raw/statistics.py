"""Computes value statistics of the tensors of a step (values="stats") in float64 without touching the step."""

from collections.abc import Collection
from math import isfinite, sqrt
from time import perf_counter_ns
from typing import Any

import torch
from torch import Tensor
from torch._subclasses import FakeTensor
from torch.utils._python_dispatch import _disable_current_modes

from nbkit.capture.raw.recording import Recording, ThreadState
from nbkit.capture.raw.shards import local_shard
from nbkit.ops.families import UNFILLED

# mean, std, min, max, norm, nan_count, inf_count; None where it has no meaning
Values = tuple[float | None, float | None, float | None, float | None, float | None, int | None, int | None]
NOTHING: Values = (None, None, None, None, None, None, None)


class Statistics:
    """Holds statistics by (thread number, position in thread.tensors).

    Every tensor is read at every op: a version counter would save work, but writes through `.data` pass it by.
    """

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.values: dict[tuple[int, int], Values] = {}
        self.unwritten: set[int | None] = set()  # storages, by number

    def note_made(self, func: Any, thread: ThreadState, position: int, made: Any) -> None:
        """Reads what an op has made or written to; of memory that none has written to yet nothing is known."""
        if getattr(func, "_opname", None) in UNFILLED:
            self.unwritten.update(map(self._storage, _flat(made, ())))
        elif self.unwritten and _writes(func):
            self.unwritten.difference_update(map(self._storage, _flat(made, ())))
        self.note(thread, position, made, ())

    def _storage(self, tensor: Tensor) -> int | None:
        try:
            return self.recording.registry.find_storage(tensor.untyped_storage())
        except RuntimeError:  # a layout without one
            return None

    def note(self, thread: ThreadState, position: int, value: Any, without: Collection[str]) -> None:
        """Reads the tensors of `value` in the order in which they stand in thread.tensors from `position`."""
        start = perf_counter_ns()
        for offset, tensor in enumerate(_flat(value, without)):
            self.values[thread.number, position + offset] = self._read(tensor)
        self.recording.spent.add(start, perf_counter_ns())

    def _read(self, tensor: Tensor) -> Values:
        try:
            # Below the recorder's own mode, but the user's other modes and subclasses must not see these ops.
            with torch._C.DisableTorchFunction(), _disable_current_modes():
                is_unknown = self.unwritten and self._storage(tensor) in self.unwritten - {None}
                return NOTHING if is_unknown else tensor_values(tensor)
        except Exception as error:  # statistics of an exotic tensor must never break the user's step
            self.recording.skip(f"statistics not available: {tensor.layout}, {tensor.dtype} ({type(error).__name__})")
            return NOTHING


def _writes(func: Any) -> bool:
    """Returns whether an op writes to what it is given; one without a schema may."""
    schema = getattr(func, "_schema", None)
    return schema is None or any(argument.is_write for argument in schema.arguments)


def tensor_values(tensor: Tensor) -> Values:
    """Returns statistics of a tensor's finite values, of any layout and dtype; empty, meta and fake ones have none."""
    if tensor.is_meta or isinstance(tensor, FakeTensor):
        return NOTHING
    x = dense(local_shard(tensor).detach())
    if x.numel() == 0:
        return None, None, None, None, None, 0, 0
    if x.is_complex():
        finite = x[torch.isfinite(x)]
        norm = torch.linalg.vector_norm(finite.to(torch.complex128)).item() if finite.numel() else None
        return None, None, None, None, norm, int(torch.isnan(x).sum()), int(torch.isinf(x).sum())
    x = x.to(torch.float64)
    total, nans, infs = x.sum().item(), 0, 0
    if not isfinite(total):  # some value is not finite, or finite ones are too large to add up
        nans, infs = int(torch.isnan(x).sum()), int(torch.isinf(x).sum())
        x = x[torch.isfinite(x)]
        if x.numel() == 0:
            return None, None, None, None, None, nans, infs
        total = x.sum().item()
    mean = total / x.numel()
    # Two passes, which is exact enough and a hundred times faster than torch.std_mean on a busy machine.
    std = torch.linalg.vector_norm(x - mean).item() / sqrt(x.numel())
    low, high = torch.aminmax(x)
    return mean, std, low.item(), high.item(), torch.linalg.vector_norm(x).item(), nans, infs


def dense(tensor: Tensor) -> Tensor:
    """Returns the stored values of a tensor of any layout as a strided one."""
    if tensor.is_quantized:
        return tensor.dequantize()
    if tensor.is_nested:
        return torch.cat([piece.reshape(-1) for piece in tensor.unbind()])
    if tensor.layout is torch.sparse_coo:
        return tensor._values()
    if tensor.layout is not torch.strided:
        return tensor.to_dense() if tensor.is_mkldnn else tensor.values()
    return tensor


def _flat(value: Any, without: Collection[str]) -> list[Tensor]:
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, dict):
        return [tensor for key, item in value.items() if key not in without for tensor in _flat(item, ())]
    if isinstance(value, (list, tuple)):
        return [tensor for item in value for tensor in _flat(item, without)]
    return []
