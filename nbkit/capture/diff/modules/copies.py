"""Copies a module and its arguments with all that is in them: running them again changes nothing of the step's."""

import copy
from collections.abc import Callable, Iterator
from enum import Enum
from functools import partial
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import torch
from torch import Tensor, nn

# They hold nothing that a call could change.
CONSTANT = (
    str, bytes, int, float, complex, bool, slice, range, type, Enum, FunctionType, BuiltinFunctionType, ModuleType,
    torch.dtype, torch.device, torch.Size, torch.layout, torch.memory_format,
)  # fmt: skip


class Copies:
    """Copies objects, every tensor by a function; one object becomes one object wherever it stands.

    `copy.deepcopy` would not do: it refuses tensors with a history, and classes may say otherwise what a copy is.
    """

    def __init__(self, of_tensor: Callable[[Tensor], Tensor]) -> None:
        self.of_tensor = of_tensor
        self.known: dict[int, tuple[Any, Any]] = {}  # the original, too, so that its id stays its own

    def of(self, value: Any) -> Any:
        """Returns the copy of an object; what cannot be copied is the object itself."""
        if value is None or isinstance(value, CONSTANT):
            return value
        if id(value) in self.known:
            return self.known[id(value)][1]
        if isinstance(value, Tensor):
            return self._keep(value, self.of_tensor(value))
        kind: Any = type(value)
        if kind is list:
            return self._filled(value, [], lambda made: made.extend(map(self.of, value)))
        if kind is dict:
            return self._filled(value, {}, lambda made: made.update((key, self.of(one)) for key, one in value.items()))
        if isinstance(value, tuple):
            items = [self.of(one) for one in value]
            return self._keep(value, kind(items) if kind is tuple or not hasattr(value, "_fields") else kind(*items))
        if kind is set:
            return self._keep(value, set(value))
        if isinstance(value, MethodType):
            owner: Any = self.of(value.__self__)
            return self._keep(value, MethodType(value.__func__, owner))
        if kind is partial:
            function: Any = self.of(value.func)
            return self._keep(value, partial(function, *self.of(value.args), **self.of(value.keywords)))
        return self._object(value)

    def _object(self, value: Any) -> Any:
        made: Any
        try:
            made = object.__new__(type(value)) if isinstance(value, nn.Module) else copy.copy(value)
        except Exception:  # a lock, a process group: shared
            return self._keep(value, value)
        self._keep(value, made)
        if isinstance(value, dict):
            for key, one in list(value.items()):
                made[key] = self.of(one)
        elif isinstance(value, list):
            made[:] = map(self.of, value)
        for name, one in getattr(value, "__dict__", {}).items():
            made.__dict__[name] = self.of(one)
        return made

    def _filled(self, value: Any, made: Any, fill: Callable[[Any], object]) -> Any:
        self._keep(value, made)  # before what is in it, which may hold it
        fill(made)
        return made

    def _keep(self, value: Any, made: Any) -> Any:
        self.known[id(value)] = (value, made)
        return made


def tensors_of(value: Any, depth: int = 6) -> Iterator[Tensor]:
    """Yields the tensors that a module was given or returned: in lists, dicts, dataclasses and other objects."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, dict):
        for one in value.values():
            yield from tensors_of(one, depth)
    elif isinstance(value, list | tuple | set):
        for one in value:
            yield from tensors_of(one, depth)
    elif depth and value is not None and not isinstance(value, (*CONSTANT, nn.Module)):
        for one in getattr(value, "__dict__", {}).values():
            yield from tensors_of(one, depth - 1)


def held_tensors(module: nn.Module) -> Iterator[Tensor]:
    """Yields the parameters, buffers and other tensors of a module and of those in it."""
    for one in module.modules():
        yield from (tensor for tensor in one._parameters.values() if tensor is not None)
        yield from (tensor for tensor in one._buffers.values() if tensor is not None)
        yield from (value for value in one.__dict__.values() if isinstance(value, Tensor))
