"""Describes what recordings are made with here: versions, the recorder, devices."""

import torch

from nbkit.capture.frames.build import versions
from nbkit.capture.native.library import library
from nbkit.compat.torch_versions import current_accelerator


def machine() -> dict[str, str]:
    """Returns versions, recorder and devices by name, as text."""
    recorder = "python (nbkit.build_recorder() builds the faster one)" if library() is None else "observer"
    return {**versions(), "recorder": recorder, "devices": ", ".join(["cpu", *_accelerators()])}


def _accelerators() -> list[str]:
    """Returns the devices of the accelerator that torch was built for, with their names where torch knows them."""
    kind = current_accelerator()
    if kind is None:
        return []
    names = getattr(torch.get_device_module(kind), "get_device_name", None)
    devices = [f"{kind.type}:{index}" for index in range(torch.accelerator.device_count())]
    return [f"{name} ({names(index)})" if names else name for index, name in enumerate(devices)]
