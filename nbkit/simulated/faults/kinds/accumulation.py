"""Spoils sums and products by an accumulator that keeps too few bits, at every term or after blocks of them."""

from collections.abc import Callable
from math import ceil
from random import Random
from typing import Any, NamedTuple

import torch
from torch import Tensor

from nbkit.simulated.call import Call, NotApplicableError, Results
from nbkit.simulated.faults.kinds.kind import Kind

# A sum is cut into at most so many parts, each added to the accumulator at once, as the blocks of a real kernel are.
PARTS = 64
# (start, end) along the summed axis -> the part of the result that those terms make.
Part = Callable[[int, int], Tensor]
BFLOAT16 = 7  # bits of its mantissa


class Accumulator(NamedTuple):
    """Keeps so many mantissa bits after every block of terms; blocks as long as makes `parts` of them if not given.

    `lot` draws the order of the blocks; they are added from the first to the last if there is none.
    """

    bits: int
    block: int | None = None
    parts: int = PARTS
    lot: Random | None = None


def low_precision_accumulation(call: Call, size: float, memory: dict[Any, Any]) -> Results:
    """Returns the op's sum with an accumulator of `size` mantissa bits: 7 are bfloat16's, 10 TF32's."""
    return accumulated_result(call, Accumulator(int(size)))


def half_precision_blocks(call: Call, size: float, memory: dict[Any, Any]) -> Results:
    """Returns the op's sum with blocks of `size` terms added in bfloat16; each block by itself is right."""
    return accumulated_result(call, Accumulator(BFLOAT16, int(size)))


def accumulated_result(call: Call, accumulator: Accumulator) -> Results:
    """Returns the op's sum made by an accumulator. Raises NotApplicableError for ops whose terms are not known."""
    if call.name not in SUMS:
        raise NotApplicableError(f"no accumulation is known of {call.func}; it is of {', '.join(sorted(SUMS))}")
    if len(call.results) != 1 or not call.results[0].is_floating_point():
        raise NotApplicableError(f"{call.func} has no single floating-point result")
    return [SUMS[call.name](call, accumulator).to(call.results[0].dtype)]


def accumulated(part: Part, length: int, accumulator: Accumulator) -> Tensor:
    """Returns the sum of all parts, rounded to the accumulator's bits after each one."""
    bits = accumulator.bits
    width = accumulator.block or max(1, ceil(length / accumulator.parts))
    starts = [*range(0, length, width)] or [0]
    if accumulator.lot is not None:
        accumulator.lot.shuffle(starts)
    parts = (part(start, min(start + width, length)) for start in starts)
    total = next(parts)
    for following in parts:
        total = rounded(total + following, bits)
    return rounded(total, bits)


def rounded(values: Tensor, bits: int) -> Tensor:
    """Rounds `values` to the nearest numbers of `bits` mantissa bits after the leading one; NaN and Inf stay."""
    mantissa, exponent = torch.frexp(values)  # the mantissa is in [0.5, 1)
    near = torch.ldexp((mantissa * 2.0 ** (bits + 1)).round(), exponent - bits - 1)
    return torch.where(values.isfinite(), near, values)


def wide(tensor: Tensor) -> Tensor:
    """Returns `tensor` in float32, or in float64 where it is that: the terms themselves must not lose anything."""
    return tensor.to(torch.promote_types(tensor.dtype, torch.float32))


def _product(left: Tensor, right: Tensor, accumulator: Accumulator) -> Tensor:
    left, right = wide(left), wide(right)
    if not left.shape[-1]:
        empty: Tensor = left @ right
        return empty
    axis = max(right.dim() - 2, 0)
    return accumulated(lambda a, b: left[..., a:b] @ right.narrow(axis, a, b - a), left.shape[-1], accumulator)


def _matrix_product(call: Call, accumulator: Accumulator) -> Tensor:
    return _product(call.inputs[0], call.inputs[1], accumulator)


def _added_product(call: Call, accumulator: Accumulator) -> Tensor:
    added, left, right = call.inputs[:3]
    total: Tensor = call.argument("beta") * wide(added) + call.argument("alpha") * _product(left, right, accumulator)
    return total


def _sum(call: Call, accumulator: Accumulator) -> Tensor:
    values, dims = wide(call.inputs[0]), _reduced(call)
    remaining = [dim for dim in range(values.dim()) if dim not in dims]
    rows = values.permute(*remaining, *dims).reshape(*(values.shape[dim] for dim in remaining), -1)
    if not rows.numel():
        raise NotApplicableError(f"{call.func} has nothing to sum in an empty tensor")
    return accumulated(lambda a, b: rows[..., a:b].sum(-1), rows.shape[-1], accumulator).reshape(call.results[0].shape)


def _mean(call: Call, accumulator: Accumulator) -> Tensor:
    total = _sum(call, accumulator)
    share: float = call.results[0].numel() / call.inputs[0].numel()
    return total * share


def _convolution(call: Call, accumulator: Accumulator) -> Tensor:
    x, weight, bias = call.inputs[:3]
    if call.argument("transposed") or call.argument("groups") != 1:
        raise NotApplicableError(
            "of convolutions only those of one group that are not transposed have a known accumulation"
        )
    x, weight = wide(x), wide(weight)
    total = accumulated(
        lambda a, b: call.func(x[:, a:b], weight[:, a:b], None, *call.inputs[3:]), weight.shape[1], accumulator
    )
    return total if bias is None else total + wide(bias).view(-1, *[1] * (weight.dim() - 2))


def _reduced(call: Call) -> list[int]:
    """Returns the axes that a sum runs over."""
    dims, count = call.argument("dim"), call.inputs[0].dim()
    dims = [dims] if isinstance(dims, int) else dims
    return sorted(dim % count for dim in dims) if dims and count else list(range(count))


SUMS: dict[str, Callable[[Call, Accumulator], Tensor]] = {
    **dict.fromkeys(("mm", "bmm", "mv", "dot"), _matrix_product),
    **dict.fromkeys(("addmm", "baddbmm"), _added_product),
    "sum": _sum,
    "mean": _mean,
    "convolution": _convolution,
}
KINDS = (
    Kind(
        "low_precision_accumulation",
        low_precision_accumulation,
        "a sum or product is accumulated with too few bits",
        "the mantissa bits of the accumulator (7 as bfloat16, 10 as TF32)",
        7,
        smallest=1,
        largest=23,
    ),
    Kind(
        "half_precision_blocks",
        half_precision_blocks,
        "a sum or product is right in blocks, which are added in bfloat16",
        "the terms of a block",
        16,
        smallest=1,
    ),
)
