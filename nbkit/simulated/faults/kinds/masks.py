"""Applies masks wrongly: one place further, turned round, not at all."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from nbkit.simulated.call import Call, NotApplicableError, Results
from nbkit.simulated.faults.kinds.kind import Kind

NAMES = ("mask", "condition", "attn_mask")
# Ops in which True hides; in all others it shows.
HIDING = ("masked_fill", "masked_scatter")


def shifted_mask(call: Call, size: None, memory: dict[Any, Any]) -> Results:
    """Returns the op with its mask one place further along the last axis; a causal one shows the next position, too."""
    if call.argument("is_causal"):
        return call.rerun({"is_causal": False, "attn_mask": _causal(call).triu(2)})
    return _with_mask(call, lambda mask: mask.roll(1, -1))


def inverted_mask(call: Call, size: None, memory: dict[Any, Any]) -> Results:
    """Returns the op with a bool mask that shows what it should hide."""
    return _with_mask(call, lambda mask: ~mask if mask.dtype is torch.bool else mask)


def ignored_mask(call: Call, size: None, memory: dict[Any, Any]) -> Results:
    """Returns the op as if its mask hid nothing."""
    if call.argument("is_causal"):
        return call.rerun({"is_causal": False})
    shown = call.name not in HIDING

    def without(mask: Tensor) -> Tensor:
        return torch.full_like(mask, shown) if mask.dtype is torch.bool else torch.zeros_like(mask)

    return _with_mask(call, without)


def shifted_diagonal(call: Call, size: None, memory: dict[Any, Any]) -> Results:
    """Returns a triangle with the next diagonal."""
    if call.name not in ("triu", "tril"):
        raise NotApplicableError(f"{call.func} makes no triangle")
    return call.rerun({"diagonal": call.argument("diagonal") + 1})


def _with_mask(call: Call, change: Callable[[Tensor], Tensor]) -> Results:
    for name in NAMES:
        mask = call.argument(name)
        if isinstance(mask, Tensor) and mask.dim() and (mask.dtype is torch.bool or name == "attn_mask"):
            return call.rerun({name: change(mask)})
    raise NotApplicableError(f"{call.func} takes no mask")


def _causal(call: Call) -> Tensor:
    """Returns -inf for every pair of positions of an attention."""
    query, key = call.argument("query"), call.argument("key")
    hidden: Tensor = query.new_full((query.shape[-2], key.shape[-2]), -torch.inf)
    return hidden


KINDS = (
    Kind("shifted_mask", shifted_mask, "the mask stands one place further along its last axis"),
    Kind("inverted_mask", inverted_mask, "a bool mask shows what it should hide"),
    Kind("ignored_mask", ignored_mask, "the mask hides nothing"),
    Kind("shifted_diagonal", shifted_diagonal, "triu and tril begin one diagonal further"),
)
