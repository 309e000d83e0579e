"""Counts the bytes that an op reads and writes."""

from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload

# They read of their first tensor (embedding: its rows) no more than they return.
GATHERS = frozenset("embedding gather index index_select take _unsafe_index select_scatter".split())
# They read an element of their first tensor for each one of the second, or of the second tensor none: its shape alone.
PICKS = frozenset("nll_loss_forward nll_loss2d_forward".split())
UNREAD = {"nll_loss_backward": 1, "nll_loss2d_backward": 1}
# They return memory without filling it.
EMPTY = frozenset("empty empty_strided new_empty new_empty_strided empty_like empty_permuted resize_".split())
# They make views, which their schema does not say, or hand on what they are given.
UNSAFE_VIEWS = frozenset("_unsafe_view unsafe_split unsafe_chunk unsafe_split_with_sizes wait_tensor".split())


class Traffic:
    """Says of each op which of its arguments it writes, and whether it only makes another view."""

    def __init__(self) -> None:
        self.known: dict[OpOverload, tuple[bool, frozenset[str | int]]] = {}

    def _traits(self, func: OpOverload) -> tuple[bool, frozenset[str | int]]:
        entry = self.known.get(func)
        if entry is None:
            entry = self.known[func] = _traits(func)
        return entry

    def bytes_of(self, func: OpOverload, args: Any, kwargs: Any, out: Any) -> tuple[int, int]:
        """Returns bytes read and written; of each region of memory once, and none of a view or of new empty memory."""
        moves_nothing, written = self._traits(func)
        if moves_nothing:
            return 0, 0
        read: dict[Any, int] = {}
        wrote: dict[Any, int] = {}
        for place, arg in [*enumerate(args), *kwargs.items()]:
            if isinstance(arg, Tensor | list | tuple):
                if UNREAD.get(func._opname) != place:
                    _regions(arg, read)
                if place in written:
                    _regions(arg, wrote)
        _regions(out, wrote)
        if func._opname in GATHERS:
            return sum(wrote.values()) + sum([*read.values()][1:]), sum(wrote.values())
        if func._opname in PICKS:
            picked = args[1].numel() * args[0].element_size()
            return picked + sum([*read.values()][1:]), sum(wrote.values())
        return sum(read.values()), sum(wrote.values())


def _traits(func: OpOverload) -> tuple[bool, frozenset[str | int]]:
    schema = func._schema
    written: set[str | int] = set()
    for place, argument in enumerate(schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            written |= {place, argument.name}
    aliases = [returned.alias_info for returned in schema.returns]
    is_view = bool(aliases) and all(alias is not None and not alias.is_write for alias in aliases)
    is_view |= torch.Tag.inplace_view in func.tags  # transpose_ and its like change sizes alone
    return is_view or func._opname in EMPTY or func._opname in UNSAFE_VIEWS, frozenset(written)


def _regions(held: Any, regions: dict[Any, int]) -> None:
    if isinstance(held, Tensor):
        try:
            storage = held.untyped_storage()
        except (RuntimeError, NotImplementedError):  # layouts without one
            regions[id(held)] = held.numel() * held.element_size()
            return
        nbytes = min(
            held.numel() * held.element_size(), storage.nbytes()
        )  # an expanded tensor is smaller than it looks
        regions[id(storage), held.storage_offset(), nbytes] = nbytes
    elif isinstance(held, list | tuple):
        for item in held:
            _regions(item, regions)
