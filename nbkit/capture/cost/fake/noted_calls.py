"""Notes calls of ops without the tensors that they take: where these lie, what is made and what is written."""

from typing import Any, NamedTuple

import torch
from torch import Tensor, UntypedStorage
from torch._ops import OpOverload


class View(NamedTuple):
    """Holds where a tensor without values lies: the number of its memory, its bytes, and how it is laid out there."""

    number: int
    nbytes: int
    dtype: torch.dtype
    shape: torch.Size
    stride: tuple[int, ...]
    offset: int
    is_conj: bool = False  # torch conjugates or negates what lies there when somebody reads it
    is_neg: bool = False

    def of(self, memory: UntypedStorage) -> Tensor:
        """Returns the tensor of this layout on a memory with values."""
        empty = torch.empty(0, dtype=self.dtype, device=memory.device)
        tensor = empty.set_(memory, self.offset, self.shape, self.stride)
        tensor = torch._conj(tensor) if self.is_conj else tensor
        return torch._neg_view(tensor) if self.is_neg else tensor

    def filled(self, values: Tensor) -> UntypedStorage:
        """Returns a new memory that holds these values in this layout."""
        memory = torch.UntypedStorage(self.nbytes, device=values.device)
        self.of(memory).copy_(values)
        return memory


class Pattern(NamedTuple):
    """Holds what calls that are alike have in common: the op, its arguments with views in place of tensors, its price.

    The number of a view, and what is taken and written, are places in the numbers of a call.
    """

    func: OpOverload
    args: Any
    kwargs: Any
    made: tuple[View | None, ...]  # of each result; null for a view of what was there
    taken: tuple[int, ...]
    written: tuple[int, ...]
    flops: int


class Call(NamedTuple):
    """Holds a call: its pattern, and the numbers of the memories of what it takes and returns, tensor by tensor."""

    pattern: Pattern
    numbers: tuple[int, ...]

    def made(self) -> list[View | None]:
        """Returns where each result lies; null for a view of what was there."""
        views = self.pattern.made
        return [None if view is None else view._replace(number=self.numbers[view.number]) for view in views]

    def makes(self) -> set[int]:
        """Returns the numbers of the memories that it makes."""
        return {self.numbers[view.number] for view in self.pattern.made if view is not None}

    def taken(self) -> set[int]:
        """Returns the numbers of the memories that it takes."""
        return {self.numbers[place] for place in self.pattern.taken}

    def written(self) -> set[int]:
        """Returns the numbers of the memories that it writes to."""
        return {self.numbers[place] for place in self.pattern.written}


def memory_of(value: Tensor, view: View, others: set[int]) -> UntypedStorage:
    """Returns the memory of a result, laid out as on shapes and shared with nothing that the op took."""
    memory = value.untyped_storage()
    layout = value.dtype, value.shape, value.stride(), value.storage_offset(), memory.nbytes()
    is_as_told = layout == (view.dtype, view.shape, view.stride, view.offset, view.nbytes)
    return memory if is_as_told and memory.data_ptr() not in others else view.filled(value)


def numbers(held: Any) -> list[int]:
    """Returns the numbers of the views in an argument."""
    if type(held) is View:
        return [held.number]
    return [number for item in held for number in numbers(item)] if type(held) in (list, tuple) else []


def written_places(func: OpOverload) -> tuple[int | str, ...]:
    """Returns which arguments an op writes to, by their place and by their name."""
    if not func._schema.is_mutable:
        return ()
    arguments = [*enumerate(func._schema.arguments)]
    written = [pair for pair in arguments if pair[1].alias_info is not None and pair[1].alias_info.is_write]
    return tuple(key for place, argument in written for key in (place, argument.name))
