"""Tells a NaN or an Inf that somebody wrote on purpose, such as the -Inf of a mask, from one that came of a fault."""

import torch
from torch import Tensor

from nbkit.capture.check.values import values_of
from nbkit.capture.replay.op_traits import OpTraits
from nbkit.ops.families import FILLS, family

# Where the -Inf of a mask is at home: what hides scores and reads what is left, and what only moves values.
MASKING = family("ADDS MASKED_FILLS MASK_READERS minimum")
MOVING = family("MOVES TRIANGLES")


def hides(traits: OpTraits, tensors: int) -> bool:
    """Returns whether an op with so many tensors may read the -Inf of a mask."""
    packet = traits.packet
    return packet in MOVING or (packet in MASKING and (tensors > 1 or not packet.startswith("add")))


def is_given(traits: OpTraits, tensor: Tensor, tensors: int) -> bool:
    """Returns whether what is not finite in a tensor from outside the step is there on purpose, for such an op."""
    if tensor.dim() or tensor.requires_grad:
        return hides(traits, tensors) and is_mask(tensor)
    # A number that somebody wrote, such as torch.tensor(-inf): as with one of Python, nobody computes with a NaN.
    return traits.packet in FILLS or traits.packet in MOVING or not bool(torch.isnan(tensor).any())


def is_mask(tensor: Tensor) -> bool:
    """Returns whether all that is not finite in a tensor is -Inf, as in what is added to scores to mask some."""
    return not tensor.requires_grad and holds_only_minus_inf(tensor)


def holds_only_minus_inf(tensor: Tensor) -> bool:
    """Returns whether it holds no NaN and no +Inf."""
    if not tensor.is_floating_point():
        return False
    values = values_of(tensor)
    return not bool(torch.isnan(values).any()) and not bool(torch.isposinf(values).any())
