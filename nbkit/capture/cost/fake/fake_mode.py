"""Fake tensors for a step: torch's own mode, which finds the result of a call that it has met by fewer questions."""

from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode, in_kernel_invocation_manager

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

    def _cache_key(self, state: Any, func: Any, args: Any, kwargs: Any) -> Any:
        parts: list[Any] = [func, torch.get_default_dtype(), torch.is_inference_mode_enabled()]
        if not (self._is_told(parts, args) and (not kwargs or self._is_told(parts, [*kwargs, *kwargs.values()]))):
            return super()._cache_key(state, func, args, kwargs)
        short = tuple(parts)
        key = self.keys.get(short)
        if key is None:
            key = self.keys[short] = super()._cache_key(state, func, args, kwargs)
        return key

    def _get_output_tensor_from_cache_entry(self, state: Any, entry: Any, key: Any, func: Any, args: Any) -> Any:
        """Makes a result as torch does, without what it asks of sizes that are symbols: here are none."""
        known = entry.metadata
        if known is None or entry.inplace_idx is not None or known.is_conj or known.is_neg:
            return super()._get_output_tensor_from_cache_entry(state, entry, key, func, args)
        with in_kernel_invocation_manager(self):
            made = torch.empty_strided(
                known.shape, known.stride, dtype=known.dtype, layout=known.layout, device="meta",
                requires_grad=known.requires_grad,
            )  # fmt: skip
            if func.is_view:
                made.set_(args[entry.view_idx].untyped_storage(), known.storage_offset, known.shape, known.stride)
        return FakeTensor(self, made, known.device)

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
