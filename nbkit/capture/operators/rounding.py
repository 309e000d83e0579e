"""Rounds tensors to narrow dtypes, with scales for 8 bits, and says what is lost: overflow, underflow, equal values."""

from collections.abc import Sequence

import torch
from torch import Tensor

BLOCK = 128
# Distinct values are counted in so many elements at most, evenly spread.
MOST_COUNTED = 65_536


def rounded(values: Tensor, dtype: torch.dtype, scaling: str | None) -> Tensor:
    """Returns the values in float32 as `dtype` holds them: as they are, with a scale per tensor, or one per block.

    A scale maps the largest value to the largest number of the dtype; a block is 128 elements of the last dim. What is
    too large without a scale becomes the largest number.
    """
    wide = values.to(torch.float32)
    scale = _scale(wide, torch.finfo(dtype).max, scaling)
    largest = torch.finfo(dtype).max
    return (wide / scale).clamp(-largest, largest).to(dtype).to(torch.float32) * scale


def _scale(values: Tensor, largest: float, scaling: str | None) -> Tensor:
    if scaling in (None, "none") or not values.numel():
        return torch.ones((), device=values.device)
    if scaling == "tensor" or values.dim() == 0:
        top = values.abs().amax()
        return torch.where(top > 0, top / largest, torch.ones_like(top))
    last = values.shape[-1]
    padded = torch.nn.functional.pad(values.abs(), (0, -last % BLOCK))
    top = padded.unflatten(-1, (-1, BLOCK)).amax(-1)
    scale = torch.where(top > 0, top / largest, torch.ones_like(top))
    return scale.repeat_interleave(BLOCK, -1)[..., :last]


def lost(tensors: Sequence[Tensor], dtype: torch.dtype, scaling: str | None) -> dict[str, float]:
    """Returns which shares of the elements of tensors overflow, underflow to 0, and fall together with other values."""
    count = overflow = underflow = distinct = left = 0
    largest = torch.finfo(dtype).max
    for tensor in tensors:
        wide = tensor.detach().to(torch.float64).reshape(-1)
        scale = _scale(tensor.detach().to(torch.float32), largest, scaling).to(torch.float64)
        scaled = wide / (scale if scale.dim() == 0 else scale.reshape(-1))
        held = scaled.clamp(-largest, largest).to(dtype).to(torch.float64)
        is_finite = wide.isfinite()
        count += wide.numel()
        overflow += int((is_finite & ((scaled.abs() > largest) & (scaled.to(dtype).to(torch.float64) != held))).sum())
        underflow += int(((held == 0) & (wide != 0) & is_finite).sum())
        step = -(-wide.numel() // MOST_COUNTED) or 1
        values, after = wide[::step], (held * scale.reshape(-1) if scale.dim() else held * scale)[::step]
        distinct += len(values.unique())
        left += len(after.unique())
    return {
        "overflow_fraction": overflow / count if count else 0.0,
        "underflow_fraction": underflow / count if count else 0.0,
        "collapsed_fraction": max(1 - left / distinct, 0.0) if distinct else 0.0,
    }
