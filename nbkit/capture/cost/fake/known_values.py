"""Keeps the values that a step without values needs all the same: counters of optimizers, lengths, small masks."""

from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils.weak import WeakIdKeyDictionary, WeakIdRef

from nbkit.capture.cost.fake.absent_devices import all_here
from nbkit.capture.cost.fake.noted_calls import written_places
from nbkit.capture.replay.copies import all_tensors, tensors_in
from nbkit.capture.replay.isolated import isolated
from nbkit.ops.families import CONSTANTS

MOST_FLOATS, MOST_INTEGERS = 1, 1 << 16
UNKNOWN = object()
# Ops of others may have effects, and collectives wait for other processes: they are run where a user asks for it.
RUN_UNASKED = frozenset(("aten", "prims", "torchvision"))
FILLED = CONSTANTS - {"_efficientzerotensor"}
# Says whether gradients are finite (GradScaler): they are taken to be.
UNSCALE = torch.ops.aten._amp_foreach_non_finite_check_and_unscale_.default


class Kind:
    """Holds what is asked of an op at each of its calls."""

    __slots__ = ("is_computed", "is_filled", "is_mutable")

    def __init__(self, func: OpOverload) -> None:
        self.is_filled, self.is_mutable = func._opname in FILLED, func._schema.is_mutable
        self.is_computed = func.namespace in RUN_UNASKED and torch.Tag.nondeterministic_seeded not in func.tags


class KnownValues:
    """Computes on copies what depends on small real tensors on the CPU alone; the tensors themselves stay as they are.

    `step` of an optimizer's state, which decides its bias correction, or a mask of integers that the step asks for its
    largest entry. What depends on any other tensor is not known.
    """

    def __init__(self) -> None:
        self.values = WeakIdKeyDictionary()
        self.kinds: dict[OpOverload, Kind] = {}
        self.ids: set[int] = set()  # of all that have been known, and maybe of others since
        self.memories: dict[int, list[WeakIdRef]] = {}  # by the number of a memory the known tensors that lie in it

    def note(self, real: Tensor, fake: FakeTensor) -> None:
        """Keeps a copy of a real tensor, if it is small; of a larger fake one its values are taken to repeat."""
        with isolated():
            most = MOST_FLOATS if real.is_floating_point() or real.is_complex() else MOST_INTEGERS
            if real.layout is torch.strided and real.device.type == "cpu" and max(real.numel(), fake.numel()) <= most:
                self._keep(fake, repeated(real.detach(), fake.shape).to(fake.dtype, copy=True))

    def _keep(self, fake: Tensor, values: Tensor) -> None:
        self.ids.add(id(fake))
        self.values[fake] = values
        if fake.layout is torch.strided:
            self.memories.setdefault(_memory(fake), []).append(WeakIdRef(fake))

    def forget(self, fake: Tensor) -> None:
        """Lets go of what is known of a tensor."""
        self.values.pop(fake, None)
        if fake.layout is torch.strided and (number := _memory(fake)) in self.memories:
            self.memories[number] = [view for view in self.memories[number] if view() is not fake]

    def of(self, held: Any) -> Any:
        """Returns a tensor, or lists and dicts that hold some, with known values; None if one is not known."""
        value = _known(self.values, held)
        return None if value is UNKNOWN else value

    def item(self, fake: Tensor) -> Any:
        """Returns what tensor.item() gives where it is known; None where it is not."""
        value = self.values.get(fake)
        if value is None:
            return None
        with isolated():
            return value.item()

    def run(self, func: OpOverload, args: Any, kwargs: Any, out: Any) -> None:
        """Computes the result of an op whose tensors are all known; what an op writes otherwise is known no more."""
        kind = self.kinds.get(func)
        if kind is None:
            kind = self.kinds[func] = Kind(func)
        if not (self.ids or kind.is_filled) or func is UNSCALE:
            return
        known: tuple[Any, Any] = (UNKNOWN, UNKNOWN)
        # Most tensors are unknown, and a look at a number is cheaper than at a weak reference.
        if kind.is_computed and self._may_know(args) and (not kwargs or self._may_know(kwargs.values())):
            known = _known(self.values, args), _known(self.values, kwargs)
        is_filled = kind.is_filled and out.numel() == 1 and out.device.type == "cpu"
        if UNKNOWN in (known[0], known[1]) or not (is_filled or all_tensors(args, kwargs)):
            if kind.is_mutable and len(self.values):
                self._forget_written(func, args, kwargs)
            return
        with isolated():
            result = func(*all_here(known[0]), **all_here(known[1]))
        if kind.is_mutable:
            self._forget_written(func, args, kwargs, known)
        for fake, value in zip(tensors_in(out), tensors_in(result), strict=False):
            if fake not in self.values and value.numel() <= MOST_INTEGERS:
                self._keep(fake, value)

    def _may_know(self, values: Iterable[Any]) -> bool:
        for value in values:
            if isinstance(value, Tensor):
                if id(value) not in self.ids:
                    return False
            elif isinstance(value, list | tuple) and not self._may_know(value):
                return False
        return True

    def _forget_written(self, func: OpOverload, args: Any, kwargs: Any, known: tuple[Any, Any] | None = None) -> None:
        """Lets go of what an op wrote to; of what it wrote from known values, of views with values of their own."""
        news = [] if known is None else [_memory(value) for value in _written(func, *known)]
        for place, fake in enumerate(_written(func, args, kwargs)):
            if fake.layout is not torch.strided:
                if known is None:
                    self.values.pop(fake, None)
                continue
            for other in [view() for view in self.memories.get(_memory(fake), ())]:
                values = None if other is None else self.values.get(other)
                if values is not None and (known is None or _memory(values) != news[place]):
                    self.values.pop(other, None)


def _memory(tensor: Tensor) -> int:
    return int(tensor.untyped_storage()._cdata)


def _written(func: OpOverload, args: Any, kwargs: Any) -> Iterator[Tensor]:
    """Yields the tensors that an op writes to, lists of them one by one."""
    for place in written_places(func):
        if isinstance(place, str):
            yield from tensors_in([kwargs.get(place)])
        elif place < len(args):
            yield from tensors_in([args[place]])


def repeated(values: Tensor, shape: torch.Size) -> Tensor:
    """Returns a tensor of this shape in which values repeat."""
    for dim, size in enumerate(shape):
        if values.shape[dim] != size:
            values = values.index_select(dim, torch.arange(size) % values.shape[dim])
    return values


def _known(values: Any, held: Any) -> Any:
    """Returns arguments with values for fake tensors; UNKNOWN if one has none."""
    if isinstance(held, Tensor):
        value = values.get(held)
        return UNKNOWN if value is None else value
    if isinstance(held, list | tuple):
        items = [_known(values, item) for item in held]
        return UNKNOWN if any(item is UNKNOWN for item in items) else type(held)(items)
    if isinstance(held, dict):
        named = {name: _known(values, item) for name, item in held.items()}
        return UNKNOWN if any(item is UNKNOWN for item in named.values()) else named
    return held
