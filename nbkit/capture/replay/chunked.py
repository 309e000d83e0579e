"""Large pointwise ops, run piece by piece: what is widened stays in the cache, and memory is that of the result."""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from nbkit.capture.replay.copies import all_tensors, mapped_call
from nbkit.capture.replay.op_traits import Plan

PIECE = 1 << 15


def is_done_in_pieces(plan: Plan, args: Any, kwargs: Any) -> bool:
    """Whether a call is pointwise on large tensors of one shape that lie in order in memory; scalars may stand by."""
    if not plan.is_pointwise:
        return False
    tensors = all_tensors(args, kwargs)
    large = [tensor for tensor in tensors if tensor.dim()]
    return (
        bool(large)
        and large[0].numel() > PIECE
        and not any(isinstance(arg, list | tuple) for arg in args)
        and all(type(tensor).__torch_dispatch__ is Tensor.__torch_dispatch__ for tensor in tensors)
        and all(tensor.shape == large[0].shape and tensor.is_contiguous() for tensor in large)
        and len(plan.func._schema.returns) == 1
    )


def pieced(plan: Plan, args: Any, kwargs: Any, widen: Callable[[Any], Any]) -> Tensor:
    """The op's result (or the tensor it writes to), each piece run on widened copies of the inputs."""
    shape = next(tensor.shape for tensor in all_tensors(args, kwargs) if tensor.dim())
    result: Tensor | None = None
    for start, end in _spans(shape.numel()):

        def piece(value: Any, start: int = start, end: int = end) -> Any:
            return widen(value.reshape(-1)[start:end] if isinstance(value, Tensor) and value.dim() else value)

        part_args, part_kwargs = mapped_call(args, kwargs, piece, {})
        part = plan.func._op(*part_args, **part_kwargs)
        if result is None:
            result = torch.empty(shape.numel(), dtype=part.dtype)
        result[start:end] = part
    assert result is not None
    return result.reshape(shape)


def _spans(numel: int) -> Iterator[tuple[int, int]]:
    for start in range(0, numel, PIECE):
        yield start, min(start + PIECE, numel)
