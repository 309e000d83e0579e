"""Finds the results of ops whose shape depends on values, where these are known: nonzero(), x[mask], packed lengths."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload

from nbkit.capture.replay.copies import all_tensors
from nbkit.capture.replay.isolated import isolated

Computed = Callable[[OpOverload, Any, Any], Any]
Known = Callable[[Any], Any]  # returns a tensor, or lists and dicts that hold some, with values; None where it cannot
ATEN = torch.ops.aten
MASKS = (torch.bool, torch.uint8)


def shaped_by_values(known: Known, computed: Computed, func: OpOverload, args: Any, kwargs: Any) -> Any:
    """Returns what an op gives on shapes, if known values decide its shape; None if they do not.

    `computed` runs an op on tensors without values.
    """
    if (rule := RULES.get(func)) is not None:
        return rule(known, computed, *args, **kwargs)
    taken = all_tensors(args, kwargs)
    values = known([args, [*kwargs.values()]]) if taken else None
    if values is None:
        return None
    with isolated():
        result = func(*values[0], **dict(zip(kwargs, values[1], strict=True)))
    return _without_values(result, taken[0])


def _without_values(result: Any, like: Tensor) -> Any:
    if isinstance(result, Tensor):
        return like.new_empty_strided(result.shape, result.stride(), dtype=result.dtype)
    return type(result)(_without_values(item, like) for item in result) if isinstance(result, list | tuple) else result


def _index(known: Known, computed: Computed, x: Tensor, indices: Any) -> Any:
    """Puts places in place of masks."""
    places: list[Any] = []
    for index in indices:
        if index is None or index.dtype not in MASKS:
            places.append(index)
            continue
        mask = known(index)
        if mask is None:
            return None
        with isolated():
            count = int(mask.count_nonzero())
        places += [index.new_empty(count, dtype=torch.int64) for _ in range(mask.dim())]
    return computed(ATEN.index.Tensor, (x, places), {})


def _masked_select(known: Known, computed: Computed, x: Tensor, mask: Tensor) -> Any:
    value = known(mask)
    if value is None:
        return None
    with isolated():
        count = int(value.expand(torch.broadcast_shapes(x.shape, mask.shape)).count_nonzero())
    return x.new_empty(count)


def _packed(known: Known, computed: Computed, x: Tensor, lengths: Tensor, batch_first: bool) -> Any:
    """Gives the sizes of batches as they are: layers of packed sequences read them at once."""
    values = known(lengths)
    if values is None:
        return None
    with isolated():
        data, batch_sizes = ATEN._pack_padded_sequence(torch.zeros(*x.shape[:2], 1), values, batch_first)
    return x.new_empty(len(data), *x.shape[2:]), batch_sizes


def _ctc(
    known: Known, computed: Computed, logs: Tensor, targets: Tensor, lengths: Tensor, sizes: Tensor, *_: Any
) -> Any:
    """Gives the losses, and what is kept for the backward pass: two places for each letter of the longest target."""
    values = known(sizes)
    if values is None:
        return None
    with isolated():
        longest = int(values.max()) if values.numel() else 0
    batch = logs.shape[1]
    return logs.new_empty(batch), logs.new_empty(batch, logs.shape[0], 2 * longest + 1)


RULES: Mapping[OpOverload, Callable[..., Any]] = {
    ATEN.index.Tensor: _index,
    ATEN.masked_select.default: _masked_select,
    ATEN._pack_padded_sequence.default: _packed,
    ATEN._ctc_loss.Tensor: _ctc,
}


def bounded(computed: Computed, func: OpOverload, args: Any, kwargs: Any) -> Any:
    """Returns the largest that an op whose shape depends on values can give; None where nothing bounds it."""
    rule = BOUNDS.get(func)
    return None if rule is None else rule(computed, *args, **kwargs)


def _largest_index(computed: Computed, x: Tensor, indices: Any) -> Any:
    places: list[Any] = []
    for index in indices:
        is_mask = index is not None and index.dtype in MASKS
        whole = [index.new_empty(index.numel(), dtype=torch.int64) for _ in range(index.dim())] if is_mask else [index]
        places += whole
    return computed(ATEN.index.Tensor, (x, places), {})


def _largest_select(computed: Computed, x: Tensor, mask: Tensor) -> Any:
    return x.new_empty(torch.broadcast_shapes(x.shape, mask.shape).numel())


def _largest_unique(computed: Computed, x: Tensor, *options: Any, **named: Any) -> Any:
    counts = x.new_empty(x.numel(), dtype=torch.int64)
    return x.new_empty(x.numel()), x.new_empty(x.shape, dtype=torch.int64), counts


BOUNDS: Mapping[OpOverload, Callable[..., Any]] = {
    ATEN.nonzero.default: lambda computed, x: x.new_empty((x.numel(), x.dim()), dtype=torch.int64),
    ATEN.index.Tensor: _largest_index,
    ATEN.masked_select.default: _largest_select,
    ATEN._unique2.default: _largest_unique,
    ATEN.unique_consecutive.default: _largest_unique,
}
