"""Arguments of a call for its reference: every tensor copied, dtypes and devices replaced, aliases kept."""

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any

import torch
from torch import Tensor

WIDER = {
    torch.float64: {
        **dict.fromkeys((torch.float16, torch.bfloat16, torch.float32, torch.float64), torch.float64),
        **dict.fromkeys((torch.complex32, torch.complex64, torch.complex128), torch.complex128),
    },
    torch.float32: {
        **dict.fromkeys((torch.float16, torch.bfloat16, torch.float32, torch.float64), torch.float32),
        **dict.fromkeys((torch.complex32, torch.complex64, torch.complex128), torch.complex64),
    },
}
for _dtype in (torch.float8_e4m3fn, torch.float8_e4m3fnuz, torch.float8_e5m2, torch.float8_e5m2fnuz):
    for _wide, _table in WIDER.items():
        _table[_dtype] = _wide


@cache
def copier(device: torch.device, dtype: torch.dtype) -> Callable[[Any], Any]:
    """What copies one tensor, dtype or device of a call to the reference's device and precision."""
    wider = WIDER[dtype]

    def copy(value: Any) -> Any:
        if isinstance(value, Tensor):
            return value.to(device, wider.get(value.dtype, value.dtype), copy=True)
        if isinstance(value, torch.dtype):
            return wider.get(value, value)
        return device

    return copy


def cloned(value: Any) -> Any:
    """A tensor's copy as it is, for references that take the call itself."""
    return value.detach().clone() if isinstance(value, Tensor) else value


def mapped(value: Any, change: Callable[[Any], Any], memo: dict[int, Any]) -> Any:
    """`value` with every tensor, dtype and device replaced; one tensor becomes one tensor wherever it stands."""
    if isinstance(value, Tensor):
        changed = memo.get(id(value))
        if changed is None:
            changed = memo[id(value)] = change(value)
        return changed
    kind = type(value)
    if kind is int or kind is float or value is None:
        return value
    if kind is list or kind is tuple:
        return kind(mapped(item, change, memo) for item in value)
    if kind is torch.dtype or kind is torch.device:
        return change(value)
    return value


def mapped_call(args: Any, kwargs: Any, change: Callable[[Any], Any], memo: dict[int, Any]) -> tuple[Any, Any]:
    """Arguments and keyword arguments changed by mapped()."""
    return (
        tuple([mapped(arg, change, memo) for arg in args]),
        {name: mapped(arg, change, memo) for name, arg in kwargs.items()} if kwargs else {},
    )


def with_copies(written: Iterable[Tensor], args: Any, kwargs: Any, copy: Callable[[Tensor], Tensor]) -> tuple[Any, Any]:
    """Arguments and keyword arguments with copies of what a call writes to; all others as they are."""
    return mapped_call(args, kwargs, lambda value: value, {id(tensor): copy(tensor) for tensor in written})


def narrowed_call(wide: tuple[Any, Any], original: tuple[Any, Any]) -> tuple[Any, Any]:
    """Widened arguments and keyword arguments in the dtypes of the call they are copies of, no value changed."""
    memo: dict[int, Any] = {}
    return narrowed(wide[0], original[0], memo), {
        name: narrowed(arg, original[1][name], memo) for name, arg in wide[1].items()
    }


def narrowed(value: Any, original: Any, memo: dict[int, Any]) -> Any:
    """`value` with the dtypes of `original`, which has the same structure; devices stay."""
    if isinstance(value, Tensor):
        if id(value) not in memo:
            memo[id(value)] = value.to(original.dtype)
        return memo[id(value)]
    if isinstance(value, list | tuple):
        return type(value)(narrowed(one, like, memo) for one, like in zip(value, original, strict=True))
    return original if isinstance(value, torch.dtype) else value


def tensors_in(value: Any) -> Iterator[Tensor]:
    """The tensors of an argument or result, lists flattened."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, list | tuple):
        for item in value:
            yield from tensors_in(item)


def all_tensors(args: Any, kwargs: Any) -> list[Tensor]:
    """The tensors of a call in their order, keyword tensors last."""
    tensors: list[Tensor] = []
    for value in args:
        if isinstance(value, Tensor):
            tensors.append(value)
        elif isinstance(value, list | tuple):
            tensors.extend(tensors_in(value))
    for value in kwargs.values():
        tensors.extend(tensors_in(value))
    return tensors
