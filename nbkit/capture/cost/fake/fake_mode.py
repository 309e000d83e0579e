"""Fake tensors for a step: torch's own mode, which finds the result of a call that it has met by fewer questions."""

from typing import Any

import torch
from torch import Tensor
from torch._subclasses import fake_tensor
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

# What torch's key of a call takes as it is, with its type: 1 and 1.0 are the same to a dict.
PLAIN = frozenset(
    {int, float, bool, complex, str, type(None), torch.dtype, torch.device, torch.layout, torch.memory_format}
)


# What torch keeps of a call whose result it can make again; another version may keep something else.
ENTRY: Any = getattr(fake_tensor, "_DispatchCacheValidEntry", ())


class FakeMode(FakeTensorMode):
    """Makes torch's key of a call once; the next such call is told by what decides it alone.

    torch keeps the results of calls by a key that holds 17 properties of each tensor, most of which follow from others.
    Asking for them takes longer than making the result. A call with anything unusual is left to torch.
    """

    def __init__(self) -> None:
        super().__init__()
        self.keys: dict[tuple[Any, ...], Any] = {}
        self.entries: dict[tuple[Any, ...], Any] = {}
        is_lenient = getattr(self, "_allow_unsafe_data_ptr_access", False)
        name = "_set_warn_deprecated_on_mutable_data_ptr" if is_lenient else "_set_throw_on_mutable_data_ptr"
        self.guard = getattr(torch._C, name)  # its memory is not there
        self.attributes: dict[Any, dict[str, Any]] = {}  # of a fake tensor, by its device
        self.call: tuple[Any, ...] | None = None  # what decides the result of the last call; null if it was unusual

    def dispatch(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        short = self.call = self._short(func, args, kwargs or {})
        entry = None if short is None else self.entries.get(short)
        if entry is None:
            out = super().dispatch(func, types, args, kwargs or {})
            # Where torch ran further calls to find the result, `call` is that of the last one.
            self.call = short
            known = FakeTensorMode.cache.get(self.keys[short]) if short in self.keys else None
            if short is not None and isinstance(known, ENTRY):
                self.entries[short] = known
            return out
        made = [self._made(info, func, args) for info in entry.output_infos]
        return tuple(made) if entry.is_output_tuple else made[0]

    def _made(self, info: Any, func: Any, args: Any) -> Any:
        """Returns a result as torch's memory of calls describes it, by fewer calls than torch makes one."""
        if info.inplace_idx is not None:
            return args[info.inplace_idx]
        like = info.metadata
        if like is None or like.requires_grad or like.layout is not torch.strided or like.is_conj or like.is_neg:
            return self._get_output_tensor_from_cache_entry(None, info, None, func, args)  # type: ignore[arg-type]
        with torch._C.DisableTorchFunction(), torch._C._DisableTorchDispatch():
            memory = torch.empty_strided(like.shape, like.stride, dtype=like.dtype, device="meta")
            if func.is_view:
                memory.set_(args[info.view_idx].untyped_storage(), like.storage_offset, like.shape, like.stride)
            attributes = self.attributes.get(like.device)
            if attributes is None:
                first = FakeTensor(self, memory, like.device)
                self.attributes[like.device] = dict(vars(first))
                return first
            fake = Tensor._make_subclass(
                FakeTensor, memory, False, dispatch_device=True, device_for_backend_keys=like.device
            )
            self.guard(fake)
        vars(fake).update(attributes)
        return fake

    def _short(self, func: Any, args: Any, kwargs: Any) -> tuple[Any, ...] | None:
        parts: list[Any] = [
            func, torch.get_default_dtype(), torch._C._get_default_device(), torch.is_inference_mode_enabled()
        ]  # fmt: skip
        is_told = self._is_told(parts, args) and (not kwargs or self._is_told(parts, [*kwargs, *kwargs.values()]))
        return tuple(parts) if is_told else None

    def _cache_key(self, *asked: Any) -> Any:
        if len(asked) != 4:  # a torch that asks otherwise
            return super()._cache_key(*asked)
        _, func, args, kwargs = asked
        short = self._short(func, args, kwargs)
        if short is None:
            return super()._cache_key(*asked)
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
