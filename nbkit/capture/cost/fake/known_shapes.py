"""Finds the results of ops whose shape depends on values, where these are known: nonzero(), x[mask], packed lengths."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload

from nbkit.capture.cost.fake.known_values import KnownValues
from nbkit.capture.replay.copies import all_tensors
from nbkit.capture.replay.isolated import isolated

Computed = Callable[[OpOverload, Any, Any], Any]
ATEN = torch.ops.aten
MASKS = (torch.bool, torch.uint8)


def shaped_by_values(known: KnownValues, computed: Computed, func: OpOverload, args: Any, kwargs: Any) -> Any:
    """Returns what an op gives on shapes, if known values decide its shape; None if they do not.

    `computed` runs an op on tensors without values.
    """
    if (rule := RULES.get(func)) is not None:
        return rule(known, computed, *args, **kwargs)
    taken, values = all_tensors(args, kwargs), known.of((args, kwargs))
    if values is None or not taken:
        return None
    with isolated():
        result = func(*values[0], **values[1])
    return _without_values(result, taken[0])


def _without_values(result: Any, like: Tensor) -> Any:
    if isinstance(result, Tensor):
        return like.new_empty_strided(result.shape, result.stride(), dtype=result.dtype)
    return type(result)(_without_values(item, like) for item in result) if isinstance(result, list | tuple) else result


def _index(known: KnownValues, computed: Computed, x: Tensor, indices: Any) -> Any:
    """Puts places in place of masks."""
    places: list[Any] = []
    for index in indices:
        if index is None or index.dtype not in MASKS:
            places.append(index)
            continue
        mask = known.of(index)
        if mask is None:
            return None
        with isolated():
            count = int(mask.count_nonzero())
        places += [index.new_empty(count, dtype=torch.int64) for _ in range(mask.dim())]
    return computed(ATEN.index.Tensor, (x, places), {})


def _masked_select(known: KnownValues, computed: Computed, x: Tensor, mask: Tensor) -> Any:
    value = known.of(mask)
    if value is None:
        return None
    with isolated():
        count = int(value.expand(torch.broadcast_shapes(x.shape, mask.shape)).count_nonzero())
    return x.new_empty(count)


def _packed(known: KnownValues, computed: Computed, x: Tensor, lengths: Tensor, batch_first: bool) -> Any:
    """Gives the sizes of batches as they are: layers of packed sequences read them at once."""
    values = known.of(lengths)
    if values is None:
        return None
    with isolated():
        data, batch_sizes = ATEN._pack_padded_sequence(torch.zeros(*x.shape[:2], 1), values, batch_first)
    return x.new_empty(len(data), *x.shape[2:]), batch_sizes


RULES: Mapping[OpOverload, Callable[..., Any]] = {
    ATEN.index.Tensor: _index,
    ATEN.masked_select.default: _masked_select,
    ATEN._pack_padded_sequence.default: _packed,
}
