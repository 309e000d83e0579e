"""Rounds tensors to narrow dtypes, with scales for 8 bits, and says what is lost: overflow, underflow, equal values."""

from collections.abc import Sequence
from functools import cache

import torch
from torch import Tensor

BLOCK = 128
# Distinct values are counted in so many elements at most, evenly spread.
MOST_COUNTED = 65_536
INTEGERS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def rounded(values: Tensor, dtype: torch.dtype, scaling: str | None) -> Tensor:
    """Returns the values in float32 as `dtype` holds them: as they are, with a scale per tensor, or one per block.

    A scale maps the largest finite value to the largest number of the dtype; a block is 128 elements of the last dim.
    What is too large without a scale becomes the largest number; Inf and NaN stay.
    """
    wide = values.to(torch.float32)
    scale = _scale(wide, torch.finfo(dtype).max, scaling)
    return _held(wide / scale, dtype) * scale


def _held(scaled: Tensor, dtype: torch.dtype) -> Tensor:
    """The numbers as `dtype` holds them, those too large as its largest; Inf, which a mask is made of, and NaN stay."""
    largest = torch.finfo(dtype).max
    return torch.where(scaled.isfinite(), scaled.clamp(-largest, largest).to(dtype).to(scaled.dtype), scaled)


def _is_too_large(scaled: Tensor, dtype: torch.dtype) -> Tensor:
    """Where a finite number is rounded to more than the largest of `dtype`, whether casts saturate or not."""
    limit, is_above_too = _limit(dtype)
    size = scaled.abs()
    return (size >= limit if is_above_too else size > limit) & scaled.isfinite()


@cache
def _limit(dtype: torch.dtype) -> tuple[float, bool]:
    """The number half a step above the largest of a dtype, and whether it is rounded up: to the even one of both.

    The step is taken from the numbers themselves: torch (2.13) gives float8_e5m2fnuz the eps of another dtype.
    """
    largest = torch.tensor(torch.finfo(dtype).max, dtype=torch.float64)
    bits = largest.to(dtype).view(INTEGERS[dtype.itemsize])
    step = largest - (bits - 1).view(dtype).to(torch.float64)
    return float(largest + step / 2), bool(bits & 1)


def _scale(values: Tensor, largest: float, scaling: str | None) -> Tensor:
    if scaling in (None, "none") or not values.numel():
        return torch.ones((), device=values.device)
    sizes = torch.where(values.isfinite(), values.abs(), 0.0)
    if scaling == "tensor" or values.dim() == 0:
        return _as_scale(sizes.amax() / largest)
    last = values.shape[-1]
    padded = torch.nn.functional.pad(sizes, (0, -last % BLOCK))
    scale = _as_scale(padded.unflatten(-1, (-1, BLOCK)).amax(-1) / largest)
    return scale.repeat_interleave(BLOCK, -1)[..., :last]


def _as_scale(scale: Tensor) -> Tensor:
    return torch.where(scale > 0, scale, torch.ones_like(scale))


def lost(tensors: Sequence[Tensor], dtype: torch.dtype, scaling: str | None) -> dict[str, float]:
    """Returns which shares of the elements of tensors overflow, underflow to 0, and fall together with other values."""
    count = overflow = underflow = distinct = left = 0
    largest = torch.finfo(dtype).max
    for tensor in tensors:
        wide = tensor.detach().to(torch.float64).reshape(-1)
        scale = _scale(tensor.detach().to(torch.float32), largest, scaling).to(torch.float64)
        scaled = wide / (scale if scale.dim() == 0 else scale.reshape(-1))
        held = _held(scaled, dtype)
        count += wide.numel()
        overflow += int(_is_too_large(scaled, dtype).sum())
        underflow += int(((held == 0) & (wide != 0)).sum())
        step = -(-wide.numel() // MOST_COUNTED) or 1
        values, after = wide[::step], (held * scale.reshape(-1) if scale.dim() else held * scale)[::step]
        distinct += len(values.unique())
        left += len(after.unique())
    return {
        "overflow_fraction": overflow / count if count else 0.0,
        "underflow_fraction": underflow / count if count else 0.0,
        "collapsed_fraction": max(1 - left / distinct, 0.0) if distinct else 0.0,
    }
