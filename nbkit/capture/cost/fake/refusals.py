"""Refuses what cannot run on shapes, such as nested tensors; tells what a DataLoader asks for."""

from collections.abc import Callable
from sys import _getframe
from types import FrameType

import torch
from torch import Tensor
from torch.nn import Module
from torch.nn.parallel import DistributedDataParallel

from nbkit.capture.raw.shards import is_dtensor
from nbkit.errors import CostError


def refuse_nested(is_nested: bool, place: Callable[[], str]) -> None:
    """Raises CostError for a nested tensor, which the step takes or makes; `place` says where."""
    if is_nested:
        raise CostError(
            f"opcost cannot take a nested tensor, whose sizes are values{place()}; give the step a padded one, as "
            "torch.nested.to_padded_tensor makes it."
        )


def refuse_shard(tensor: Tensor, what: Callable[[], str]) -> None:
    """Raises CostError for a DTensor; `what` says which it is or where: on shapes torch asks for its shards' values."""
    if is_dtensor(tensor):
        raise CostError(
            f"opcost cannot take a DTensor, which is spread over processes{what()}; give it the step with the model as "
            "it was before parallelize_module() or fully_shard(), and ask nbkit.what_if(step, tensor_parallel=N) or "
            "(step, fully_sharded=N) what one of N ranks costs."
        )


def refuse_ranks(model: Module) -> None:
    """Raises CostError for a model whose step talks to other processes in C++ or by ops that know no shapes."""
    is_parallel = isinstance(model, DistributedDataParallel)
    if is_parallel and torch.is_grad_enabled() and model.require_backward_grad_sync:
        raise CostError(
            "opcost cannot take DistributedDataParallel, whose reducer sums real gradients; give it the step with the "
            "model inside (model.module): a rank costs the same, and sends all gradients."
        )
    for name, parameter in model.named_parameters():
        refuse_shard(parameter, f", as {name} is".__str__)


def not_taken(tensor: Tensor, where: str) -> CostError:
    """Returns the error of a tensor whose class makes itself again on shapes, as the simulated device's does."""
    advice = "give the step plain tensors"
    if tensor.device.type != "cpu":
        advice = "run the step on the CPU, and name the accelerator with opcost(device=...) for its times"
    return CostError(f"opcost cannot take a {type(tensor).__name__} on {tensor.device}{where}; {advice}.")


def is_of_loader() -> bool:
    """Returns whether a DataLoader of torch runs what is running."""
    frame: FrameType | None = _getframe(1)
    while frame is not None and not frame.f_globals.get("__name__", "").startswith("torch.utils.data."):
        frame = frame.f_back
    return frame is not None
