"""Describes the arguments of an op: those that are no tensors as JSON, and where its tensors lie among them."""

import json
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch._ops import OpOverload

# What stands for a tensor among the values that describe() takes; a list of tensors is a tuple of it.
A_TENSOR = Ellipsis
PLAIN = (int, str, type(None))
VALUES = frozenset((int, float, bool, str, type(None), torch.dtype, torch.device, torch.layout))
NAMED = (torch.dtype, torch.layout, torch.memory_format)


class Arguments(NamedTuple):
    """Holds what many calls of an op have in common; the recorder keeps one for all of them."""

    text: str | None  # JSON object, by name in the op's schema; null where all are tensors or None
    form: tuple[int | None, ...]  # per argument: null for no tensor, -1 for a tensor, else how many a list holds


def describe(func: Any, values: Sequence[Any]) -> Arguments:
    """Returns the arguments of a call of `func`, whose tensors are A_TENSOR in `values`, without out=."""
    names = [argument.name for argument in func._schema.arguments if not argument.is_out]
    named = {name: _plain(value) for name, value in zip(names, values, strict=True) if not _holds_tensors(value)}
    known = {name: value for name, value in named.items() if value is not None}
    form = tuple(_form(value) for value in values)
    return Arguments(json.dumps(known) if known else None, form)


def _holds_tensors(value: Any) -> bool:
    return value is A_TENSOR or (isinstance(value, tuple) and any(item is A_TENSOR for item in value))


def _form(value: Any) -> int | None:
    if value is A_TENSOR:
        return -1
    return sum(item is A_TENSOR for item in value) if _holds_tensors(value) else None


def _plain(value: Any) -> Any:
    """Returns a value as JSON has it; numbers that JSON lacks as text, what is no value as null."""
    if isinstance(value, PLAIN):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, NAMED):
        return str(value).removeprefix("torch.")
    return str(value) if isinstance(value, torch.device | complex) else None


def describer(skip: Callable[[str], None]) -> Callable[[Any, Any, Any], Arguments | None]:
    """Returns a function that describes calls as the Python recorder meets them, and remembers those that are alike.

    What it cannot describe it tells `skip`.
    """
    known: dict[Any, Arguments] = {}
    schemas: dict[int, Any] = {}

    def described(func: Any, args: Any, kwargs: Any) -> Arguments | None:
        if type(func) is not OpOverload:
            return None
        arguments = schemas.get(id(func))
        if arguments is None:
            arguments = schemas[id(func)] = [each for each in func._schema.arguments if not each.is_out]
        try:
            values = [_marked(value) for value in args[: len(arguments)]]
            for argument in arguments[len(values) :]:
                given = kwargs and argument.name in kwargs
                values.append(_marked(kwargs[argument.name] if given else argument.default_value))
            # 1, 1.0 and True are equal keys.
            key = (id(func), tuple(values), tuple(map(type, values)))
            found = known.get(key)
            if found is None:
                found = known[key] = describe(func, values)
        except Exception as error:  # the recorder's own trouble must never become the step's
            skip(f"arguments not described ({type(error).__name__})")
            return None
        return found

    return described


def _marked(value: Any) -> Any:
    """Returns an argument with its tensors marked."""
    if type(value) in VALUES:  # most arguments, told sooner than that they are no tensors
        return value
    if isinstance(value, Tensor):
        return A_TENSOR
    if isinstance(value, list | tuple):
        return tuple(map(_marked, value))
    return None if isinstance(value, torch.SymInt | torch.SymFloat | torch.SymBool | torch.Generator) else value
