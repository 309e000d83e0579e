"""Texts such as "cpu:float64", which name a device and a precision."""

from collections.abc import Mapping
from typing import TypeVar

import torch

from nbkit.capture.native.library import own_work
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
