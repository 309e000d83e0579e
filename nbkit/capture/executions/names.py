"""Names the tensors of inputs and outputs by the arguments and items in which they stand."""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import fields, is_dataclass
from functools import wraps
from typing import Any

import numpy as np
from torch import Tensor, nn

# A cache of keys and values holds layers, which hold tensors.
DEPTH = 8
Named = tuple[str, Tensor]
PLAIN = (bool, int, float, complex, str, type(None), np.ndarray, np.generic)


def named_inputs(target: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Named]:
    """Returns the tensors of a call: `input_ids`, `mask['x']`, or `args[1]['x']` where the argument has no name."""
    try:
        function = target.forward if isinstance(target, nn.Module) else target
        given = inspect.signature(function).bind(*args, **kwargs)
        kinds = given.signature.parameters
    except (TypeError, ValueError):
        return [*_tensors("args", list(args)), *(named for name in kwargs for named in _tensors(name, kwargs[name]))]
    found: list[Named] = []
    for name, value in given.arguments.items():
        if kinds[name].kind is inspect.Parameter.VAR_KEYWORD:
            found += [named for key in value for named in _tensors(key, value[key])]
        else:
            found += _tensors(name, value)
    return found


def named_outputs(value: Any) -> list[Named]:
    """Returns the tensors of what a model returns: `logits`, `past_key_values[0]`, `[0]` of a list or alone."""
    if isinstance(value, Tensor):
        return [("[0]", value)]
    if isinstance(value, Mapping):
        return [named for key, item in value.items() for named in _tensors(str(key), item)]
    return [(name.removeprefix("."), tensor) for name, tensor in _tensors("", value)]


def plain_outputs(value: Any) -> dict[str, Any]:
    """Returns what a model returns beside tensors, by the names of outputs: numbers, texts, None and numpy's arrays."""
    return {name: np.array(item) if isinstance(item, np.ndarray) else item for name, item in _plain("", value)}


def _plain(path: str, value: Any, depth: int = DEPTH) -> Iterator[tuple[str, Any]]:
    if isinstance(value, PLAIN):
        yield path.removeprefix("."), value
    elif depth and (isinstance(value, Mapping | list | tuple) or (is_dataclass(value) and not isinstance(value, type))):
        for key, item in _items(value):
            yield from _plain(path + key, item, depth - 1)


def returning_tensors(module: nn.Module) -> AbstractContextManager[None]:
    """Lets a module return its tensors alone, by name: torch.export knows no caches and other objects of a library."""
    return returning(module, lambda out: dict(named_outputs(out)))


@contextmanager
def returning(module: nn.Module, converted: Callable[[Any], Any]) -> Iterator[None]:
    """Lets a module return what `converted` makes of what it returns."""
    own, forward = vars(module).get("forward"), module.forward

    @wraps(forward)
    def returned(*args: Any, **kwargs: Any) -> Any:
        return converted(forward(*args, **kwargs))

    module.forward = returned
    try:
        yield
    finally:
        if own is None:
            del module.forward
        else:
            module.forward = own


def _tensors(path: str, value: Any, depth: int = DEPTH) -> Iterator[Named]:
    if isinstance(value, Tensor):
        yield path, value
    elif depth:
        for key, item in _items(value):
            yield from _tensors(path + key, item, depth - 1)


def _items(value: Any) -> list[tuple[str, Any]]:
    if isinstance(value, Mapping):
        return [(f"[{key!r}]", item) for key, item in value.items()]
    if isinstance(value, tuple) and (names := getattr(value, "_fields", None)) is not None:
        return [(f".{name}", item) for name, item in zip(names, value, strict=True)]
    if isinstance(value, list | tuple):
        return [(f"[{number}]", item) for number, item in enumerate(value)]
    if is_dataclass(value):
        return [(f".{each.name}", getattr(value, each.name)) for each in fields(value)]
    if isinstance(value, nn.Module | type) or callable(value):
        return []
    return [(f".{name}", item) for name, item in getattr(value, "__dict__", {}).items()]
