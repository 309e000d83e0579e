"""Counts the bytes that an op reads and writes."""

from collections.abc import Callable
from math import prod
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch._ops import OpOverload

from nbkit.ops import families
from nbkit.ops.flops.counts import argument

# They read of their first tensor (embedding: its rows) no more than they return.
GATHERS = families.GATHERS | {"select_scatter"}
UNREAD = {"nll_loss_backward": 1, "nll_loss2d_backward": 1}
# They make views, hand on what they are given, or return memory without filling it.
QUIET = families.QUIET_VIEWS | families.UNFILLED | {"resize_"}
# They read as many rows of their first tensor as there are indices, the second.
BAGS = frozenset("_embedding_bag _embedding_bag_forward_only".split())
# They write to some places of their first tensor and add to what these hold.
ADDING = families.INDEX_ADDS | {"embedding_renorm_"}
MASKS = (torch.bool, torch.uint8)


class Traits(NamedTuple):
    """Says of an op whether it only makes another view, and which arguments it writes, and which it does not read."""

    moves_nothing: bool
    written: frozenset[str | int]
    unread: frozenset[str | int]


class Traffic:
    """Counts what calls read and write, by what the schema of each op says and by its name."""

    def __init__(self) -> None:
        self.known: dict[OpOverload, Traits] = {}

    def bytes_of(
        self, func: OpOverload, args: Any, kwargs: Any, out: Any, is_in_place: bool = False
    ) -> tuple[int, int]:
        """Returns bytes read and written; of each region of memory once, and none of a view or of new empty memory.

        With `is_in_place` an op that returns a new tensor writes into its first one, as the form of it in place does.
        """
        traits = self.known.get(func)
        if traits is None:
            traits = self.known[func] = _traits(func)
        if traits.moves_nothing:
            return 0, 0
        name = func._opname + "_" * is_in_place
        if (count := TOUCHED.get(name)) is not None and (touched := count(args)) is not None:
            return _scattered(name, args, kwargs, touched)
        read: dict[Any, int] = {}
        wrote: dict[Any, int] = {}
        for place, arg in [*enumerate(args), *kwargs.items()]:
            if isinstance(arg, Tensor | list | tuple):
                if place not in traits.unread:
                    _regions(arg, read)
                if place in traits.written:
                    _regions(arg, wrote)
        _regions(out, wrote)
        return _read_bytes(name, args, [*read.values()], sum(wrote.values())), sum(wrote.values())


def _read_bytes(name: str, args: Any, regions: list[int], written: int) -> int:
    """Returns the bytes that a call reads; of the first of its regions maybe a part."""
    if name in GATHERS:
        return written + sum(regions[1:])
    if name in families.CLASS_LOSSES:
        return int(args[1].numel() * args[0].element_size()) + sum(regions[1:])
    if name in BAGS:
        return _of_rows(args[0], 0, args[1]) * int(args[0].element_size()) + sum(regions[1:])
    return sum(regions)


def _scattered(name: str, args: Any, kwargs: Any, touched: int) -> tuple[int, int]:
    """Returns the bytes that a write to some elements of a tensor reads and writes: of the tensor these alone."""
    whole: dict[Any, int] = {}
    _regions(args[0], whole)
    written = min(touched * int(args[0].element_size()), sum(whole.values()))
    read: dict[Any, int] = {}
    for given in (*args[1:], *kwargs.values()):
        _regions(given, read)
    adds = name in ADDING or "reduce" in kwargs or (name in ACCUMULATE and argument(args, kwargs, 3, "accumulate"))
    return sum(read.values()) + (written if adds else 0), written


def _of_rows(tensor: Tensor, dim: int, indices: Tensor) -> int:
    """Returns the elements of a tensor at indices along a dimension, an index that comes twice counted twice."""
    return indices.numel() * (tensor.numel() // max(tensor.shape[dim], 1) if tensor.dim() else 1)


def _along_dim(args: Any) -> int:
    return _of_rows(args[0], args[1], args[2])


def _at_each(place: int) -> Callable[[Any], int]:
    return lambda args: int(args[place].numel())


def _indexed(args: Any) -> int | None:
    """Returns how many elements `tensor[indices]` has; None where a mask decides it, which is a value."""
    tensor, indices = args[0], args[1]
    given = [index for index in indices if index is not None]
    if any(index.dtype in MASKS for index in given):
        return None
    left = [size for dim, size in enumerate(tensor.shape) if dim >= len(indices) or indices[dim] is None]
    return int(prod(torch.broadcast_shapes(*(index.shape for index in given))) * prod(left))


# They write to these elements of their first tensor alone, by their arguments.
ACCUMULATE = frozenset(name for name in families.INDEX_PUTS if "put" in name)
TOUCHED: dict[str, Callable[[Any], int | None]] = {
    **dict.fromkeys("index_copy_ index_add_ index_reduce_ index_fill_".split(), _along_dim),
    **dict.fromkeys("scatter_ scatter_add_ scatter_reduce_".split(), _at_each(2)),
    **dict.fromkeys("index_put_ _index_put_impl_".split(), _indexed),
    "put_": _at_each(1),
    "embedding_renorm_": lambda args: _of_rows(args[0], 0, args[1]),
}


def _traits(func: OpOverload) -> Traits:
    schema, name = func._schema, func._opname
    written: set[str | int] = set()
    unread: set[str | int] = {UNREAD[name]} if name in UNREAD else set()
    for place, taken in enumerate(schema.arguments):
        if taken.alias_info is not None and taken.alias_info.is_write:
            written |= {place, taken.name}
            if name in families.OVERWRITING or taken.is_out:
                unread |= {place, taken.name}
    aliases = [returned.alias_info for returned in schema.returns]
    is_view = bool(aliases) and all(alias is not None and not alias.is_write for alias in aliases)
    is_view |= torch.Tag.inplace_view in func.tags  # transpose_ and its like change sizes alone
    return Traits(
        is_view or name in QUIET,
        frozenset(written),
        frozenset(unread),
    )


def _regions(held: Any, regions: dict[Any, int]) -> None:
    if isinstance(held, Tensor):
        try:
            storage = held.untyped_storage()
        except RuntimeError:  # layouts without one
            regions[id(held)] = held.numel() * held.element_size()
            return
        nbytes = min(
            held.numel() * held.element_size(), storage.nbytes()
        )  # an expanded tensor is smaller than it looks
        regions[id(storage), held.storage_offset(), nbytes] = nbytes
    elif isinstance(held, list | tuple):
        for item in held:
            _regions(item, regions)
