"""Gives the inputs of a call other strides, with the same values."""

from functools import cache
from typing import Any

import torch
from torch import Tensor

from nbkit.capture.operators.copies import moved
from nbkit.capture.operators.stable.bits import is_trusted
from nbkit.capture.replay.copies import mapped_call
from nbkit.capture.replay.op_traits import OpTraits
from nbkit.ops.undeclared import STRIDED

# scaled_dot_product_attention chooses its kernel by strides.
OF_ATTENTION = ("_scaled_dot_product_", "_flash_attention_", "_efficient_attention_", "_cudnn_attention_")
TAGS = ("needs_exact_strides", "needs_contiguous_strides", "needs_fixed_stride_order")
CHANNELS_LAST = {4: torch.channels_last, 5: torch.channels_last_3d}


def with_other_strides(traits: OpTraits, args: Any, kwargs: Any) -> tuple[Any, Any] | None:
    """Returns the arguments of a call with other strides; None where none has others, or the op is about strides."""
    if _is_by_strides(traits.func):
        return None
    is_changed = False

    def change(value: Any) -> Any:
        nonlocal is_changed
        if not isinstance(value, Tensor):
            return value
        other = restrided(value)
        is_changed |= other.stride() != value.stride()
        return other

    changed = mapped_call(args, kwargs, change, {})
    return changed if is_changed else None


@cache
def _is_by_strides(func: Any) -> bool:
    is_named = func._opname in STRIDED or func._opname.startswith(OF_ATTENTION)
    return is_named or any(getattr(torch.Tag, tag, None) in func.tags for tag in TAGS)


def restrided(value: Tensor) -> Tensor:
    """Returns a copy of a tensor whose elements lie in another order, or apart from each other."""
    if value.numel() < 2:
        return value.clone()
    work = (value if is_trusted(value) else value.cpu()).resolve_conj().resolve_neg()
    made = _restrided(work)
    return made if is_trusted(value) else moved(made, value.device, value.dtype)


def _restrided(value: Tensor) -> Tensor:
    channels_last = CHANNELS_LAST.get(value.dim())
    if channels_last is not None:
        is_last = value.is_contiguous(memory_format=channels_last) and not value.is_contiguous()
        made = value.clone(memory_format=torch.contiguous_format if is_last else channels_last)
        if made.stride() != value.stride():
            return made
    if value.dim() > 1 and min(value.shape[-2:]) > 1:
        is_turned = value.stride(-2) < value.stride(-1)
        return value.clone(memory_format=torch.contiguous_format) if is_turned else value.mT.contiguous().mT
    apart = value.new_empty((*value.shape, 2))[..., 0]
    return apart.copy_(value)
