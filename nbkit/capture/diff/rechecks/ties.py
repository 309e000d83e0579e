"""Indices that differ from the reference's but point at equal values: right as well."""

from typing import Any

import torch
from torch import Tensor

from nbkit.capture.replay.op_traits import bound
from nbkit.capture.replay.reference import Call
from nbkit.ops.families import PICKS, SORTS

# So many last dimensions, taken as one, are those that the indices of these count.
POOLS = {
    f"{pool}_pool{dims}d{ending}": dims
    for dims in (1, 2, 3)
    for pool, ending in (("max", "_with_indices"), ("adaptive_max", ""), ("fractional_max", ""))
}


def ties(call: Call, actual: Tensor, expected: Tensor) -> Tensor | None:
    """Which elements of two index tensors point at equal values of the op's input; None if the op gives no indices."""
    packet = call.traits.packet
    if packet not in PICKS and packet not in POOLS:
        return None
    arguments = bound(call.traits.func, call.args, call.kwargs)
    values = arguments.get("self")
    if not isinstance(values, Tensor) or actual.shape != expected.shape:
        return None
    if packet in POOLS:
        dims = POOLS[packet]
        values, actual, expected, dim = values.flatten(-dims), actual.flatten(-dims), expected.flatten(-dims), -1
    else:
        values, dim = _along(arguments, values, actual)
        actual, expected = (_with_dim(one, values, dim) for one in (actual, expected))
    return _point_at_equal(values, actual, expected, dim, packet in SORTS)


def _along(arguments: dict[str, Any], values: Tensor, actual: Tensor) -> tuple[Tensor, int]:
    dim = arguments.get("dim", -1)
    if dim is None or values.dim() == 0:
        return values.reshape(-1), 0
    return values, int(dim)


def _with_dim(indices: Tensor, values: Tensor, dim: int) -> Tensor:
    """The indices with the dimension that keepdim=False took away."""
    if indices.dim() == values.dim():
        return indices
    return indices.reshape(-1) if values.dim() == 1 else indices.unsqueeze(dim)


def _point_at_equal(values: Tensor, actual: Tensor, expected: Tensor, dim: int, is_distinct: bool) -> Tensor:
    size = values.shape[dim]
    inside = (actual >= 0) & (actual < size)
    first = values.gather(dim, actual.clamp(0, max(size - 1, 0)))
    second = values.gather(dim, expected)
    same = inside & ((first == second) | ((first != first) & (second != second)))
    if is_distinct:  # one element may not stand for two
        ordered = actual.sort(dim).values
        twice = (ordered.narrow(dim, 1, ordered.shape[dim] - 1) == ordered.narrow(dim, 0, ordered.shape[dim] - 1)).any(
            dim, keepdim=True
        )
        same = same & (~twice | torch.eq(actual, expected))
    return same.reshape(-1)
