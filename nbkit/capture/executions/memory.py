"""Says which result a tensor holds when an op reads it, also after other ops have written to its memory."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from weakref import ref

from torch import Tensor

from nbkit.capture.executions.arrays import Geometry, geometry_of
from nbkit.capture.raw.shards import local_shard


class Known(NamedTuple):
    """Holds the result that a view was after so many writes to its storage; later ones may have changed it."""

    geometry: Geometry
    result: int
    version: int


@dataclass
class Block:
    """Holds what is known of one storage: its writes in order, and the result that each view of it last was."""

    anchor: Any
    is_outside: bool  # there before the step, or made without an op
    views: dict[Geometry, Known] = field(default_factory=dict)
    first: dict[Geometry, int] = field(default_factory=dict)  # results of tensors that no op made
    writes: list[tuple[Geometry, int]] = field(default_factory=list)
    before: tuple[Any, Any] | None = None  # the storage and a copy of what it held, if the step wrote to it


class Memory:
    """Keeps the results by storage and geometry; `add_outside` adds the result of a tensor that no op has made.

    `add_written` adds the result of a view whose memory was written to: from what it was, and each part written since.
    """

    def __init__(
        self,
        add_outside: Callable[[Tensor], int],
        add_written: Callable[[Tensor, list[tuple[Geometry, int]]], int],
    ) -> None:
        self.add_outside, self.add_written = add_outside, add_written
        self.blocks: dict[int, Block] = {}
        self.objects: dict[int, tuple[Any, Known]] = {}

    def block(self, tensor: Tensor, is_outside: bool = True) -> Block:
        """Returns what is known of the storage of a tensor, which may be met for the first time."""
        holder = _holder(tensor)
        known = self.blocks.get(id(holder))
        if known is None or known.anchor() is not holder:
            known = self.blocks[id(holder)] = Block(ref(holder), is_outside)
        return known

    def read(self, tensor: Tensor) -> int:
        """Returns the result that a tensor holds now."""
        block, geometry = self.block(tensor), geometry_of(tensor)
        known = self._known(block, tensor, geometry) or self._covering(block, geometry)
        if known is None:
            result = self.add_outside(tensor)
            block.first.setdefault(geometry, result)
        else:
            result = self._current(block, tensor, geometry, known)
        self._note(block, tensor, geometry, result)
        return result

    def made(self, tensor: Tensor, result: int) -> None:
        """Notes the result that an op has returned in a tensor."""
        self._note(self.block(tensor, is_outside=False), tensor, geometry_of(tensor), result)

    def written(self, tensor: Tensor, result: int) -> None:
        """Notes the result that an op has written into a tensor."""
        block, geometry = self.block(tensor), geometry_of(tensor)
        block.writes.append((geometry, result))
        self._note(block, tensor, geometry, result)

    def keep_before(self, tensor: Tensor) -> None:
        """Copies a storage that was there before the step, if this is the first op that writes to it."""
        block = self.block(tensor)
        if block.is_outside and block.before is None:
            holder = _holder(tensor)
            block.before = holder, holder.clone()

    def restore(self) -> None:
        """Puts what storages held before the step back into them; may be called again after another such step."""
        for block in self.blocks.values():
            if block.before is not None:
                storage, copy = block.before
                storage.copy_(copy)

    def outside(self, tensor: Tensor) -> list[int]:
        """Returns the results that a tensor was when the step met it as no op had made it."""
        block = self.block(tensor)
        found = block.first.get(geometry_of(tensor))
        return [] if found is None else [found]

    def _current(self, block: Block, tensor: Tensor, geometry: Geometry, known: Known) -> int:
        """Returns the result of a view from a known one that held its elements before later writes."""
        span = geometry.span()
        since = [write for write in block.writes[known.version :] if _overlap(write[0].span(), span)]
        if since and since[-1][0] == geometry:
            return since[-1][1]
        if not since and known.geometry == geometry:
            return known.result
        return self.add_written(tensor, [(known.geometry, known.result), *since])

    def _known(self, block: Block, tensor: Tensor, geometry: Geometry) -> Known | None:
        held = self.objects.get(id(tensor))
        if held is not None and held[0]() is tensor and held[1].geometry == geometry:
            return held[1]
        # Autograd wraps saved tensors anew: they are the last one with the same elements.
        return block.views.get(geometry)

    def _covering(self, block: Block, geometry: Geometry) -> Known | None:
        """Returns for a view met for the first time, after writes, the last result that has all of its elements."""
        if not block.writes:
            return None  # what it was is its own values
        first, end = geometry.span()
        found = [
            known
            for view, known in block.views.items()
            if view.dtype == geometry.dtype and view.is_dense() and view.span()[0] <= first and end <= view.span()[1]
        ]
        return max(found, key=lambda known: known.version, default=None)

    def _note(self, block: Block, tensor: Tensor, geometry: Geometry, result: int) -> None:
        known = block.views[geometry] = Known(geometry, result, len(block.writes))
        # torch.utils.swap_tensors refuses tensors with weak references: parameters have their storage only.
        if not (tensor.is_leaf and tensor.requires_grad):
            self.objects[id(tensor)] = (ref(tensor), known)


def _holder(tensor: Tensor) -> Any:
    try:
        return local_shard(tensor).untyped_storage()
    except RuntimeError:  # sparse, nested and other layouts
        return tensor


def _overlap(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return one[0] < other[1] and other[0] < one[1]
