"""Refuses what cannot run on shapes: devices that are not there, nested tensors; tells what a DataLoader asks for."""

from collections.abc import Callable
from sys import _getframe
from types import FrameType
from typing import Any

import torch
from torch._ops import OpOverload

from nbkit.errors import CostError


def refuse_device(func: OpOverload, kwargs: dict[str, Any]) -> None:
    """Raises CostError for a tensor on a device that this torch cannot use: torch would end the process in backward."""
    device = kwargs.get("device")
    if device is None or torch.device(device).type in ("cpu", "meta"):
        return
    kind = torch.device(device).type
    module = getattr(torch, kind, None)
    if module is None or not getattr(module, "is_available", lambda: False)():
        raise CostError(
            f"{func.name().replace('::', '.')} makes a tensor on {kind}, which this torch cannot use; run the step on "
            "the CPU, and name the accelerator with opcost(device=...) for its times."
        )


def refuse_nested(is_nested: bool, place: Callable[[], str]) -> None:
    """Raises CostError for a nested tensor, which the step takes or makes; `place` says where."""
    if is_nested:
        raise CostError(
            f"opcost cannot take a nested tensor, whose sizes are values{place()}; give the step a padded one, as "
            "torch.nested.to_padded_tensor makes it."
        )


def is_of_loader() -> bool:
    """Returns whether a DataLoader of torch runs what is running."""
    frame: FrameType | None = _getframe(1)
    while frame is not None and not frame.f_globals.get("__name__", "").startswith("torch.utils.data."):
        frame = frame.f_back
    return frame is not None
