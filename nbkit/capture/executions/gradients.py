"""Backpropagates what a model returns, without touching gradients that its tensors have."""

from typing import Any

import torch
from torch import Tensor

from nbkit.capture.executions.names import named_outputs
from nbkit.capture.executions.observer import ExecutionObserver

NO_GRADIENT = "Nothing was backpropagated: no output requires a gradient."


def backpropagate(out: Any, observer: ExecutionObserver) -> tuple[dict[int, int], list[str]]:
    """Returns of each leaf's result the result of its gradient, and a note where there is nothing to differentiate."""
    loss = loss_of(out)
    leaves = observer.leaves
    if loss is None or not leaves:
        return {}, [NO_GRADIENT]
    gradients = torch.autograd.grad(loss, list(leaves.values()), allow_unused=True)
    pairs = zip(leaves, gradients, strict=True)
    return {leaf: observer.read(gradient) for leaf, gradient in pairs if gradient is not None}, []


def loss_of(out: Any) -> Tensor | None:
    """Returns the loss that a model returns under this name, else the mean of its first output with a gradient."""
    named = [(name, tensor) for name, tensor in named_outputs(out) if tensor.requires_grad]
    floats = [tensor for _, tensor in named if tensor.is_floating_point()]
    losses = [tensor for name, tensor in named if name == "loss"]
    if not losses and not floats:
        return None
    chosen = (losses or floats)[0]
    return chosen if chosen.numel() == 1 else chosen.mean()
