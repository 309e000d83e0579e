"""Encodes arguments of a call as JSON data and bytes, and decodes them."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from nbkit.trace.captured_values import CapturedTensor, contiguous, extent


class Items(Protocol):
    """Gives items by number, as a list does."""

    def __getitem__(self, number: int, /) -> Any: ...


class Lookup:
    """Stands for items that are made when they are asked for."""

    def __init__(self, item: Callable[[Any], Any]) -> None:
        self.item = item

    def __getitem__(self, number: Any) -> Any:
        return self.item(number)


# A tensor that lies in more memory than this many times its own size is laid out without the gaps.
MOST_GAPS = 4
# Dtypes that cannot be made again from a narrower copy.
WIDE = (torch.float64, torch.complex128)


# What an argument may name, by its kind and by its name: nothing else of torch is looked up.
NAMED = {
    kind: {name: value for name, value in vars(torch).items() if isinstance(value, getattr(torch, kind))}
    for kind in ("dtype", "layout", "memory_format")
}


class NotCapturedError(Exception):
    """Says why the values of a call cannot be kept."""


class Form(NamedTuple):
    """Describes what a copy in another precision does not tell of a tensor."""

    dtype: torch.dtype
    stride: tuple[int, ...] | None  # null for what is not dense
    device: torch.device


def form_of(value: Any) -> Any:
    """Returns the form of a tensor; anything else as it is."""
    if not isinstance(value, Tensor):
        return value
    is_dense = value.layout is torch.strided and not value.is_quantized
    return Form(value.dtype, value.stride() if is_dense else None, value.device)


def captured_tensor(values: Tensor, form: Form) -> CapturedTensor:
    """Returns the tensor of this form from a copy of its values. Raises NotCapturedError where that would not be it."""
    if form.stride is None:
        raise NotCapturedError("it has sparse or quantized tensors")
    if form.dtype in WIDE and values.dtype is not form.dtype:
        raise NotCapturedError("its reference has narrower inputs than it has")
    own = values.detach().to("cpu", form.dtype).resolve_conj().resolve_neg().contiguous()
    data, shape = own.reshape(-1).view(torch.uint8).numpy().tobytes(), tuple(own.shape)
    has_gaps = extent(shape, form.stride) > MOST_GAPS * own.numel()
    stride = contiguous(shape) if has_gaps or not data else form.stride
    return CapturedTensor(_bare(form.dtype), shape, stride, str(form.device), data)


def _refused(value: Any) -> Any:
    raise NotCapturedError(f"it has an argument of type {type(value).__name__}")


def encoded(value: Any, add: Callable[[Any], int], others: Callable[[Any], Any] = _refused) -> Any:
    """Returns an argument as JSON data; `add` numbers each tensor, form of one, and generator.

    What has no such form is given to `others`, which raise NotCapturedError.
    """
    if isinstance(value, Form | Tensor):
        return {"tensor": add(value)}
    if isinstance(value, torch.Generator):
        return {"generator": add(value)}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return [encoded(item, add, others) for item in value]
    if isinstance(value, complex):
        return {"complex": [value.real, value.imag]}
    for kind in ("dtype", "device", "layout", "memory_format"):
        if isinstance(value, getattr(torch, kind)):
            return {kind: str(value) if kind == "device" else _bare(value)}
    return others(value)


def decoded(value: Any, tensors: Items, others: Mapping[str, Items] = MappingProxyType({})) -> Any:
    """Returns the argument that encoded() was called with, with these tensors, and of other kinds these items.

    Raises KeyError, ValueError, IndexError, TypeError or RuntimeError on what encoded() has not made.
    """
    if isinstance(value, list):
        return [decoded(item, tensors, others) for item in value]
    if not isinstance(value, dict):
        return value
    ((kind, what),) = value.items()
    if kind in NAMED:
        return NAMED[kind][what]
    if kind == "complex":
        return complex(*what)
    return {"tensor": tensors, "device": Lookup(torch.device), **others}[kind][what]


def _bare(value: Any) -> str:
    return str(value).removeprefix("torch.")
