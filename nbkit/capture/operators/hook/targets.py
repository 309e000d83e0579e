"""Finds the functions that a hook is to be put around, by name or as they are."""

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from types import BuiltinFunctionType, FunctionType
from typing import Any

import torch
from torch._ops import OpOverload, OpOverloadPacket
from torch.overrides import get_ignored_functions, get_testing_overrides

from nbkit.capture.frames.op_names import op_name
from nbkit.errors import OptionError, nearest

HEAP_TYPE, IMMUTABLE_TYPE = 1 << 9, 1 << 8  # flags of classes, as CPython has them
EXAMPLE = "give a name such as 'torch.nn.functional.softmax', or a function"


@dataclass(frozen=True)
class Target:
    """Describes a function: its name, and where an attribute leads to it; `holder` is None if torch sees its calls."""

    name: str
    function: Any
    holder: Any = None
    attribute: str = ""


def targets_of(target: object) -> list[Target]:
    """Returns the functions that a name, a function or a list of them means. Raises OptionError."""
    given = list(target) if isinstance(target, list | tuple | set | frozenset) else [target]
    if not given:
        raise OptionError(f"target={target!r} names no function; {EXAMPLE}.")
    return [_named(one) if isinstance(one, str) else _as_it_is(one) for one in given]


def _named(name: str) -> Target:
    name = name.strip()
    if not name:
        raise OptionError(f"target={name!r} names no function; {EXAMPLE}.")
    parts = name.split(".")
    holder, rest = _module(parts)
    for part in rest[:-1]:
        holder = _attribute(holder, part, name)
    if not rest:
        raise OptionError(f"target={name!r} is a module; name a function in it.")
    function = _attribute(holder, rest[-1], name)
    return _checked(Target(name, function, holder, rest[-1]))


def _module(parts: list[str]) -> tuple[Any, list[str]]:
    """Returns the module that a dotted name begins with, as far down as there are modules, and the rest of it."""
    found: Any = None
    for end in range(1, len(parts) + 1):
        path = ".".join(parts[:end])
        if found is not None and hasattr(found, parts[end - 1]) and path not in sys.modules:
            return found, parts[end - 1 :]
        try:
            found = import_module(path) if all(parts[:end]) else None
        except ImportError as error:
            if found is None:
                raise OptionError(f"target={'.'.join(parts)!r} cannot be found: {error}; {EXAMPLE}.") from error
            return found, parts[end - 1 :]
        if found is None:
            raise OptionError(f"target must be a dotted name, got {'.'.join(parts)!r}; {EXAMPLE}.")
    return found, []


def _attribute(holder: Any, part: str, name: str) -> Any:
    try:
        return getattr(holder, part)
    except AttributeError as error:
        of = getattr(holder, "__name__", repr(holder))
        hint = nearest(part, [known for known in dir(holder) if not known.startswith("__")])
        hint = hint if hint.startswith("did you mean") else f"{EXAMPLE}."
        raise OptionError(f"target={name!r} cannot be found: {of} has no {part!r}; {hint}") from error


def _as_it_is(function: Any) -> Target:
    if not callable(function):
        raise OptionError(f"target={function!r} is not a function; {EXAMPLE}.")
    if _is_seen(function):
        return _checked(Target(op_name(function), function))
    module, path = getattr(function, "__module__", None), getattr(function, "__qualname__", None)
    holder: Any = sys.modules.get(module or "")
    *outer, attribute = (path or "").split(".")
    for part in outer:
        holder = getattr(holder, part, None)
    if holder is None or not attribute or getattr(holder, attribute, None) is not function:
        what = getattr(function, "__name__", repr(function))
        raise OptionError(
            f"target={what} is not in its module under its own name; give the dotted name by which it is called, "
            f"such as 'package.module.function'."
        )
    return _checked(Target(f"{module}.{path}", function, holder, attribute))


def _checked(target: Target) -> Target:
    if isinstance(target.function, type):
        raise OptionError(f"target={target.name!r} is a class; name a function or a method, such as its 'forward'.")
    if not callable(target.function):
        kind = type(target.function).__name__
        raise OptionError(f"target={target.name!r} is not a function but a {kind}; {EXAMPLE}.")
    if _is_seen(target.function):
        return Target(target.name, target.function)
    flags = target.holder.__flags__ if isinstance(target.holder, type) else HEAP_TYPE
    if flags & IMMUTABLE_TYPE or not flags & HEAP_TYPE:
        raise OptionError(f"target={target.name!r} belongs to a class in C, where nothing can be replaced.")
    return target


def _is_seen(function: Any) -> bool:
    """Returns whether torch tells function modes of the calls of a function."""
    if isinstance(function, OpOverload | OpOverloadPacket):
        return True
    try:
        return function in _overridable()
    except TypeError:  # of an object without a hash
        return False


@cache
def _overridable() -> frozenset[Any]:
    # What makes tensors from none (torch.zeros) cannot be overridden by a tensor's class, but modes are told of it.
    makers = {one for one in get_ignored_functions() if isinstance(one, BuiltinFunctionType)}
    made = {getattr(torch.Tensor, name, None) for name in dir(torch.Tensor) if not name.startswith("__")}
    methods = {one for one in made if one is not None and not isinstance(one, FunctionType) and callable(one)}
    return frozenset({*get_testing_overrides(), *makers, *_hashable(methods)})


def _hashable(values: Iterable[Any]) -> set[Any]:
    return {value for value in values if getattr(value, "__hash__", None) is not None}
