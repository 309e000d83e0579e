"""Puts NaN in masked rows, as a kernel does that divides by the sum of what the mask has left."""

from typing import Any

import torch
from torch import Tensor

from nbkit.simulated.call import Call, NotApplicableError, Results, tensors_in
from nbkit.simulated.faults.kinds.kind import Kind


def nan_masked_rows(call: Call, size: None, memory: dict[Any, Any]) -> Results:
    """Returns NaN in each row (along the last axis) of the first result of which a mask hides an element.

    A mask is -inf in an input, or a bool input: True hides in masked_fill, False in attention and where. A causal
    attention without a mask hides most in its first row, and only that is spoiled.
    """
    result = call.results[0] if call.results else None
    if result is None or not result.is_floating_point() or not result.dim():
        raise NotApplicableError(f"{call.func} has no floating-point result with rows")
    if call.argument("is_causal"):
        wrong = result.clone()
        wrong[..., 0, :] = torch.nan
        return [wrong, *call.results[1:]]
    rows = [_row_mask(tensor, result, call) for tensor in tensors_in([*call.inputs, *call.named_inputs.values()])]
    masks = [mask for mask in rows if mask is not None]
    if not masks:
        raise NotApplicableError(f"{call.func} has no mask: no bool input and no -inf in rows that fit its result")
    hidden = torch.stack(masks).any(0)
    return [torch.where(hidden, torch.nan, result), *call.results[1:]]


def _row_mask(tensor: Tensor, result: Tensor, call: Call) -> Tensor | None:
    """Returns true in the rows of `result` of which `tensor` hides an element; None if it is no mask for them."""
    if tensor.dtype == torch.bool:
        hidden = tensor if call.name == "masked_fill" else ~tensor
    elif tensor.is_floating_point():
        hidden = tensor == -torch.inf
        if not hidden.any():
            return None
    else:
        return None
    if not hidden.dim():
        return None
    try:
        rows = hidden.any(-1, keepdim=True)
        return rows.expand(*result.shape[:-1], 1).expand(result.shape)
    except RuntimeError:  # sizes that do not broadcast to the result's rows
        return None


KINDS = (Kind("nan_masked_rows", nan_masked_rows, "rows of which a mask hides an element come out as NaN"),)
