"""Names devices with a precision, such as "cpu:float64", and says which device a call runs on and draws from."""

from collections.abc import Mapping
from typing import Any, TypeVar

import torch

from nbkit.capture.native.library import own_work
from nbkit.capture.replay.copies import all_tensors
from nbkit.capture.replay.isolated import isolated

Precision = TypeVar("Precision", torch.dtype, torch.dtype | None)
DEFAULT = "float64"


def read_place(text: str, precisions: Mapping[str, Precision]) -> tuple[torch.device, Precision]:
    """The device, the CPU if none is named, and the precision; where it cannot compute, what torch raises is raised."""
    where, _, name = text.rpartition(":")
    if name not in precisions:
        where, name = text, DEFAULT
    device, precision = torch.device(where or "cpu"), precisions[name]
    with isolated(), own_work():
        (torch.zeros(1, device=device, dtype=precision) + 1).item()
    return device, precision


def device_of(args: Any, kwargs: Mapping[str, Any]) -> torch.device:
    """Returns the device that a call runs on: that of its tensors, or that it makes a tensor on."""
    # A number from the CPU may stand first among tensors of a device.
    found = next((tensor.device for tensor in all_tensors(args, kwargs) if not tensor.is_cpu), None)
    return found or torch.device(kwargs.get("device") or "cpu")


def home_of(args: Any, kwargs: Mapping[str, Any]) -> torch.device:
    """Returns the device that the results of a call are on."""
    given = kwargs.get("device")
    return device_of(args, kwargs) if given is None else torch.device(given)


def default_generator(device: torch.device) -> torch.Generator:
    """Returns the generator that a device draws from; that of the CPU for a device without one."""
    return torch.cuda.default_generators[device.index or 0] if device.type == "cuda" else torch.default_generator
