"""Finds what a step reaches that goes on by itself: generators of random numbers; iterators, queues and open files."""

import gc
import io
import random
import sys
import sysconfig
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor

OF_NUMPY = (np.random.Generator, np.random.RandomState, np.random.BitGenerator)
GENERATORS = (torch.Generator, *OF_NUMPY, random.Random)
# A longer container is data; so many objects are looked at.
MOST_ITEMS, MOST_OBJECTS = 10_000, 100_000
UNSEEN = f"what lies behind the first {MOST_OBJECTS:,} objects that it reaches, such as generators of random numbers,"
ENDS = (str, bytes, int, float, complex, type(None), Tensor, np.ndarray, FrameType, random.SystemRandom)
LIBRARIES = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")})
# What code mentions that reads a queue, also through `iter(items.get, None)`, and that writes to one.
READS, WRITES = {"get", "get_nowait"}, {"put", "put_nowait"}
Named = tuple[str, Any]  # "" for what has no name


@dataclass
class Reached:
    """Holds the generators, and in words the iterators, queues and files that have a name or are an attribute.

    Not queues that the code of the step only writes to. `is_whole`: it was looked at all that the step reaches.
    """

    generators: list[Any] = field(default_factory=list)
    one_way: list[str] = field(default_factory=list)
    queues: list[str] = field(default_factory=list)
    is_whole: bool = True


def reached(names: Mapping[str, Any]) -> Reached:
    """Returns what is reached from the values of those names: in containers, attributes, closures, other functions."""
    found, met, words = Reached(), dict[int, Any](), set[str]()
    waiting: list[Named] = [*names.items()]
    while waiting and len(met) < MOST_OBJECTS:
        name, value = waiting.pop()
        if id(value) in met or isinstance(value, ENDS):
            continue
        met[id(value)] = value  # stays, as its id is known
        if isinstance(value, GENERATORS):
            found.generators.append(value)
            continue
        if isinstance(value, CodeType):
            words.update(_words(value))
            continue
        if (kind := _kind(value)) is not None and name:
            (found.queues if kind == "queue" else found.one_way).append(f"the {kind} `{name}`")
        waiting += _inside(value)
    found.is_whole = not waiting
    if words & WRITES and not words & READS:
        found.queues.clear()
    return found


def _kind(value: Any) -> str | None:
    """Returns in a word what an object is that can be read once only."""
    if isinstance(value, io.IOBase):
        return "file" if not value.closed and value.readable() else None
    if all(hasattr(type(value), name) for name in ("get", "put", "empty")):
        return "queue"
    return "iterator" if hasattr(type(value), "__next__") else None


def _inside(value: Any) -> Iterable[Named]:
    if isinstance(value, FunctionType):
        code = value.__code__
        named = {} if _is_library(value.__globals__) else {**mentioned(code, value.__globals__), "": code}
        cells = zip(code.co_freevars, value.__closure__ or (), strict=True)
        named |= {word: item for word, cell in cells for item in gc.get_referents(cell)}  # none of an empty one
        return [*named.items(), ("", value.__defaults__), ("", value.__kwdefaults__), ("", value.__dict__)]
    if isinstance(value, ModuleType) or (isinstance(value, type) and _is_of_library(value)):
        return ()
    if isinstance(value, type):
        return [("", item) for item in vars(value).values()]
    if isinstance(value, dict | list | tuple | set | deque):
        items = [*(value.values() if isinstance(value, dict) else value)] if len(value) <= MOST_ITEMS else []
        return [("", item) for item in items]
    own = [] if _is_of_library(type(value)) else [*getattr(value, "__dict__", {}).items(), ("", type(value))]
    # The last one comes first: what has a name is met by it.
    return [*(("", item) for item in gc.get_referents(value) if not isinstance(item, type)), *own]


def _may_hold(kind: Any) -> bool:
    return hasattr(kind, "grad_fn") or issubclass(kind, dict | list | tuple)


# Says whether values of a type are tensors or containers; asked of every name at every step.
may_hold_tensors: Callable[[Any], bool] = cache(_may_hold)


def mentioned(code: CodeType, names: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the names that code mentions, with their values; of modules that are no library's what it may mean."""
    words = set(_words(code))
    found = {word: names[word] for word in words if word in names}
    for module in [value for value in found.values() if isinstance(value, ModuleType)]:
        if not _is_library(vars(module)):
            found |= {f"{module.__name__}.{word}": vars(module)[word] for word in words if word in vars(module)}
    return found


def _words(code: CodeType) -> Iterator[str]:
    yield from (*code.co_names, *code.co_varnames, *code.co_cellvars, *code.co_freevars)
    for value in code.co_consts:
        if isinstance(value, CodeType):
            yield from _words(value)


def _is_of_library(kind: type) -> bool:
    return _is_library(getattr(sys.modules.get(str(kind.__module__), sys), "__dict__", {}))


def _is_library(module: Mapping[str, Any]) -> bool:
    """Returns whether a module is of Python or was installed; by its names."""
    file = module.get("__file__")
    return module.get("__name__") != "__main__" and (not isinstance(file, str) or file.startswith(LIBRARIES))
