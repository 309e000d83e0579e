"""Keeps what a step begins with, so that it can be run again: modules, optimizers, other objects and random numbers."""

import ctypes
import gc
import random
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import compress
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler
from torch.utils import swap_tensors

from nbkit.capture.audit.measures import has_plain_values
from nbkit.capture.calls.autocast_cache import cached_casts, put_back_casts
from nbkit.capture.replay.isolated import isolated
from nbkit.capture.watch.reached import GENERATORS

HOLDERS = (nn.Module, Optimizer, LRScheduler, torch.amp.GradScaler)
# What is copied with the container that holds it.
PLAIN = frozenset({str, int, float, bool, type(None), torch.dtype, torch.device})
# A longer list or dict is data, not state: its elements stay those of today.
MOST_ITEMS = 10_000
# What the Mersenne Twisters of numpy and Python hold: 624 words, and the place of the next one, behind and before them.
# A draw moves the place, and 624 of them make other words; a new seed makes another second word.
WORDS = 624


class TooLargeError(Exception):
    """Says that the state of a step takes more memory than may be kept."""


def freeze_torch() -> None:
    """Hides the many objects of torch from the garbage collector and from the search for models and optimizers.

    No object from before the script is part of its state. Half of them come with the first optimizer, which makes torch
    load more of itself.
    """
    import torch._dynamo  # noqa: F401

    gc.freeze()


def holders(objects: list[Any] | None = None) -> list[Any]:
    """Returns the modules, optimizers, schedulers and gradient scalers among the objects, else of the process."""
    kinds = set(_subclasses(HOLDERS))
    objects = gc.get_objects() if objects is None else objects  # hundreds of thousands
    return [*compress(objects, map(kinds.__contains__, map(type, objects)))]


def is_frozen(objects: list[Any]) -> bool:
    """Returns whether objects are hidden from the garbage collector, which told these.

    gc.get_freeze_count() counts them, which takes longer than a small step. The dict of modules is among the first
    objects of all: it comes early, and whenever some are hidden, so is it.
    """
    return id(sys.modules) not in map(id, objects)


def _subclasses(kinds: Iterable[type]) -> Iterator[type]:
    for kind in kinds:
        yield kind
        yield from _subclasses(kind.__subclasses__())


class State:
    """Holds copies of the tensors and containers that some objects hold; `bytes` counts those of the tensors.

    Containers are copied with what they hold by reference, tensors by value, with whether they are trained, and
    gradients of parameters with them, as are the casts that a block of autocast keeps. Of the tensors among `names`,
    also in lists of them, those that are trained are kept: the rest is data. Tensors for which `can_keep` answers no
    stay as they are. Of generators of random numbers among the objects the state is kept, with that of the default
    ones. Raises TooLargeError if they take more than `most_bytes`.
    """

    def __init__(
        self,
        objects: Iterable[Any],
        names: Iterable[Mapping[str, Any]],
        most_bytes: int,
        can_keep: Callable[[Tensor], bool] = has_plain_values,
    ) -> None:
        self.bytes, self.most_bytes, self.can_keep = 0, most_bytes, can_keep
        # Side by side: thousands of pairs more would make Python's garbage collector look through all there is.
        self.containers: list[Any] = []
        self.copies: list[Any] = []  # of an empty one ()
        self._met: set[int] = set()  # ids of the containers
        self.tensors: dict[int, tuple[Tensor, Tensor, Tensor | None, Tensor | None, bool]] = {}
        objects = [*objects]
        self.generators = [held for held in objects if isinstance(held, GENERATORS)]
        with isolated():
            for held in objects:
                self._keep(getattr(held, "__dict__", {}))
            for namespace in names:
                self._keep_trained(list(namespace.values()))
            self.casts = cached_casts(tensor for tensor, *_ in self.tensors.values())
        self.random = random_state(self.generators)

    def _keep_trained(self, values: Iterable[Any]) -> None:
        for value in values:
            for tensor in value if type(value) in (list, tuple) and len(value) <= MOST_ITEMS else (value,):
                if isinstance(tensor, Tensor) and tensor.requires_grad and tensor.is_leaf:
                    self._keep_tensor(tensor)

    def _keep(self, value: Any) -> None:
        waiting = [value]
        while waiting:
            value = waiting.pop()
            if isinstance(value, Tensor):
                self._keep_tensor(value)
            elif isinstance(value, dict | list | set):
                waiting += self._kept_container(value)
            elif type(value) is tuple:
                waiting += value

    def _kept_container(self, value: Any) -> list[Any]:
        """Keeps a container that is not kept yet; returns what in it may be, or hold, something to keep."""
        if id(value) in self._met or len(value) > MOST_ITEMS:
            return []
        self._met.add(id(value))
        self.containers.append(value)
        self.copies.append(value.copy() if value else ())
        items = [item for item in value if type(item) not in PLAIN]
        if isinstance(value, dict):
            items += [item for item in value.values() if type(item) not in PLAIN]
        return items

    def _keep_tensor(self, tensor: Tensor) -> None:
        if id(tensor) in self.tensors or not self.can_keep(tensor) or nn.parameter.is_lazy(tensor):
            return
        gradient = tensor.grad if tensor.is_leaf and tensor.requires_grad else None
        is_copied = gradient is not None and self.can_keep(gradient)
        self.bytes += (tensor.nbytes if tensor.numel() else 0) * (1 + is_copied)
        if self.bytes > self.most_bytes:
            raise TooLargeError
        copy = gradient.detach().clone() if gradient is not None and is_copied else None
        self.tensors[id(tensor)] = (tensor, tensor.detach().clone(), gradient, copy, tensor.requires_grad)

    def restore(self) -> None:
        """Puts everything back as it was; tensors and containers stay the same objects."""
        for container, copy in zip(self.containers, self.copies, strict=True):
            if isinstance(container, list):
                container[:] = copy
            else:
                container.clear()
                container.update(copy)
        with isolated():
            for tensor, value, gradient, of_gradient, is_trained in self.tensors.values():
                _put_back(tensor, value)
                if tensor.is_leaf and tensor.requires_grad != is_trained:  # frozen, or not any more, since
                    tensor.requires_grad_(is_trained)
                if gradient is not None and of_gradient is not None:
                    _put_back(gradient, of_gradient)
                if tensor.is_leaf and tensor.requires_grad:
                    tensor.grad = gradient
            if self.tensors:
                put_back_casts(self.casts)
        set_random_state(self.random)

    def change_of(self, tensor: Tensor) -> tuple[float, float]:
        """Returns the squared norms of a tensor's change since, and of what it was; 0 of what is not comparable."""
        _, before, *_ = self.tensors.get(id(tensor), (tensor, tensor))
        if before.shape != tensor.shape or before.device != tensor.device or not tensor.is_floating_point():
            return 0.0, 0.0
        change = torch.linalg.vector_norm((tensor.detach() - before).float())
        return float(change) ** 2, float(torch.linalg.vector_norm(before.float())) ** 2


def _put_back(tensor: Tensor, value: Tensor) -> None:
    """Writes a value into a tensor; in place where that is possible, so that views of it see it, too."""
    if tensor.shape == value.shape and tensor.dtype == value.dtype and tensor.device == value.device:
        tensor.detach().copy_(value)
        return
    try:
        tensor.data = value.clone()
    except RuntimeError:  # of another device, where module.to() swaps tensors
        copy = value.clone()
        is_parameter = isinstance(tensor, nn.Parameter)
        swap_tensors(tensor, nn.Parameter(copy, tensor.requires_grad) if is_parameter else copy)


class NumpyState:
    """Reads the state of numpy's generator. A copy takes 30 us, so that it is made again only after a draw."""

    def __init__(self) -> None:
        self.generator: Any = None
        self.words: Any = None  # the memory of the generator; null of one that is not numpy's own
        self.seen: tuple[int, int] = (-1, -1)
        self.state: Any = None

    def read(self) -> Any:
        generator = np.random.get_bit_generator()  # type: ignore[attr-defined]
        if generator is not self.generator:
            is_known = type(generator) is np.random.MT19937
            memory = (ctypes.c_uint32 * (WORDS + 1)).from_address(generator.ctypes.state_address) if is_known else None
            self.generator, self.words, self.state = generator, memory, None
        seen = (-1, -1) if self.words is None else (self.words[WORDS], self.words[1])
        # A normal number that waits is taken without a trace in the memory of the generator.
        if self.words is None or self.state is None or seen != self.seen or self.state["has_gauss"]:
            self.seen, self.state = seen, np.random.get_state(legacy=False)
        return self.state


class PythonState:
    """Reads the state of Python's generator. A copy takes 10 us and 20 kB, so that it is made only after a draw."""

    def __init__(self) -> None:
        self.generator: Any = random.getstate.__self__  # type: ignore[attr-defined]
        # The C struct of the object: its header, the place, the words.
        self.words = (ctypes.c_uint32 * (WORDS + 1)).from_address(id(self.generator) + object.__basicsize__)
        self.is_known = (*self.words[1:], self.words[0]) == self.generator.getstate()[1]
        self.seen, self.state = (-1, -1, None), self.generator.getstate()

    def read(self) -> Any:
        seen = self.words[0], self.words[2], self.generator.gauss_next
        if seen != self.seen or not self.is_known:
            self.seen, self.state = seen, self.generator.getstate()
        return self.state


NUMPY, PYTHON = NumpyState(), PythonState()


def random_state(generators: Iterable[Any] = ()) -> tuple[Any, ...]:
    """Returns the states of the generators of Python, numpy and torch, of CUDA devices in use, and of those given."""
    devices = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else None
    others = [(generator, _state_of(generator)) for generator in generators]
    return PYTHON.read(), NUMPY.read(), torch.default_generator.get_state(), devices, others


def _state_of(generator: Any) -> Any:
    if isinstance(generator, random.Random):
        return generator.getstate()
    if isinstance(generator, torch.Generator):
        return generator.get_state()
    if isinstance(generator, np.random.RandomState):
        return generator.get_state(legacy=False)
    return getattr(generator, "bit_generator", generator).state


def _set_state_of(generator: Any, state: Any) -> None:
    if isinstance(generator, random.Random):
        generator.setstate(state)
    elif isinstance(generator, torch.Generator | np.random.RandomState):
        generator.set_state(state)
    else:
        getattr(generator, "bit_generator", generator).state = state


def set_random_state(state: tuple[Any, ...]) -> None:
    """Puts back what random_state() returned."""
    of_python, of_numpy, of_torch, of_devices, others = state
    random.setstate(of_python)
    np.random.set_state(of_numpy)
    torch.set_rng_state(of_torch)
    if of_devices is not None:
        torch.cuda.set_rng_state_all(of_devices)
    for generator, of_other in others:
        _set_state_of(generator, of_other)
