"""Fake tensors for a step: torch's own mode, which finds the result of a call that it has met by fewer questions."""

from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

# What torch's key of a call takes as it is, with its type: 1 and 1.0 are the same to a dict.
PLAIN = frozenset(
    {int, float, bool, complex, str, type(None), torch.dtype, torch.device, torch.layout, torch.memory_format}
)


class FakeMode(FakeTensorMode):
    """Makes torch's key of a call once; the next such call is told by what decides it alone.

    torch keeps the results of calls by a key that holds 17 properties of each tensor, most of which follow from others.
    Asking for them takes longer than making the result. A call with anything unusual is left to torch.
    """

    def __init__(self) -> None:
        super().__init__()
        self.keys: dict[tuple[Any, ...], Any] = {}

    def _cache_key(self, *asked: Any) -> Any:
        if len(asked) != 4:  # a torch that asks otherwise
            return super()._cache_key(*asked)
        _, func, args, kwargs = asked
        parts: list[Any] = [
            func, torch.get_default_dtype(), torch._C._get_default_device(), torch.is_inference_mode_enabled()
        ]  # fmt: skip
        if not (self._is_told(parts, args) and (not kwargs or self._is_told(parts, [*kwargs, *kwargs.values()]))):
            return super()._cache_key(*asked)
        short = tuple(parts)
        key = self.keys.get(short)
        if key is None:
            key = self.keys[short] = super()._cache_key(*asked)
        return key

    def _is_told(self, parts: list[Any], values: Any) -> bool:
        """Adds what decides the result, of each value; returns False if one of them is unusual."""
        parts.append(len(values))
        for value in values:
            kind = type(value)
            if kind is FakeTensor:
                if value.fake_mode is not self or value.constant is not None or value.layout is not torch.strided:
                    return False
                parts += (
                    value.dtype, value.shape, value.stride(), value.storage_offset(), value.untyped_storage().nbytes(),
                    value.fake_device, value.requires_grad, value.is_conj(), value.is_neg(), value.is_inference(),
                )  # fmt: skip
            elif kind in PLAIN:
                parts += (kind, value)
            elif kind is list or kind is tuple:
                parts.append(kind)
                if not self._is_told(parts, value):
                    return False
            else:
                return False
        return True
