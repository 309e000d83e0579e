"""Runs large pointwise ops piece by piece: what is widened stays in the cache, and memory is that of the result."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from nbkit.capture.replay.copies import all_tensors
from nbkit.capture.replay.op_traits import OpTraits

PIECE = 1 << 16


def is_done_in_pieces(traits: OpTraits, args: Any, kwargs: Any) -> bool:
    """Whether a call is pointwise on large tensors of one shape that lie in order in memory; scalars may stand by."""
    if not traits.is_pointwise:
        return False
    large = [tensor for tensor in all_tensors(args, kwargs) if tensor.dim()]
    return (
        bool(large)
        and large[0].numel() > PIECE
        and not any(isinstance(arg, list | tuple) for arg in args)
        and all(tensor.shape == large[0].shape and tensor.is_contiguous() for tensor in large)
        and len(traits.func._schema.returns) == 1
    )


class Pieces:
    """The result of a call in pieces of PIECE elements (or the tensor it writes to), each from widened inputs."""

    def __init__(self, traits: OpTraits, args: Any, kwargs: Any, widen: Callable[[Any], Any]) -> None:
        self.run, self.widen = traits.func._op, widen
        self.shape = next(tensor.shape for tensor in all_tensors(args, kwargs) if tensor.dim())
        self.args = [self._split(value) for value in args]
        self.kwargs = {name: self._split(value) for name, value in kwargs.items()}

    def _split(self, value: Any) -> tuple[bool, Any]:
        """Whether a value has pieces, and these or the value on the reference."""
        if isinstance(value, Tensor) and value.dim():
            return True, value.reshape(-1).split(PIECE)
        return False, self.widen(value) if isinstance(value, Tensor | torch.dtype | torch.device) else value

    def result(self, number: int) -> Tensor:
        """One piece of the result; what is written to are copies."""
        args = [self._at(number, *value) for value in self.args]
        out: Tensor = self.run(*args, **{name: self._at(number, *value) for name, value in self.kwargs.items()})
        return out

    def _at(self, number: int, is_split: bool, value: Any) -> Any:
        return self.widen(value[number]) if is_split else value

    def whole(self) -> Tensor:
        """The result in one piece of memory."""
        count, result = self.shape.numel(), None
        for number, start in enumerate(range(0, count, PIECE)):
            piece = self.result(number)
            if result is None:
                result = torch.empty(count, dtype=piece.dtype)
            result[start : start + PIECE] = piece
        assert result is not None
        return result.reshape(self.shape)
