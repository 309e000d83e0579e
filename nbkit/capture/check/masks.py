"""Masks: the -Inf that is put where nothing is to be seen, which is no error until an op makes more of it."""

import torch
from torch import Tensor

from nbkit.capture.check.values import values_of
from nbkit.capture.replay.op_traits import Plan

# Where the -Inf of a mask is at home: what hides scores and reads what is left, and what only moves values.
MASKING = frozenset(
    "add add_ where masked_fill masked_fill_ minimum maximum max amax logsumexp _softmax _log_softmax".split()
)
MOVING = frozenset(
    "clone _to_copy copy_ cat stack index index_select gather repeat triu tril constant_pad_nd roll flip".split()
)


def hides(plan: Plan, tensors: int) -> bool:
    """Whether an op with so many tensors may read the -Inf of a mask."""
    return plan.packet in MOVING or (plan.packet in MASKING and (tensors > 1 or not plan.packet.startswith("add")))


def is_mask(tensor: Tensor) -> bool:
    """Whether all that is not finite in a tensor is -Inf, as in what is added to scores to hide some of them."""
    if tensor.requires_grad or not tensor.is_floating_point():
        return False
    values = values_of(tensor)
    return not bool(torch.isnan(values).any()) and not bool(torch.isposinf(values).any())
