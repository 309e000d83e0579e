"""Registers what torch runs without the tensor's own code: making memory on the device, and copies to and from it."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from nbkit.simulated.autocast import register_autocast
from nbkit.simulated.composites import COMPOSITES
from nbkit.simulated.ops import check_index, run_op
from nbkit.simulated.tensor import SimulatedTensor

aten = torch.ops.aten
MAKERS = (
    aten.empty.memory_format,
    aten.empty_strided.default,
    aten.tril_indices.default,
    aten.triu_indices.default,
)
# Ops that have a kernel on the CPU, but are taken apart on a device that registers none: the only three (torch 2.13).
WHOLE_ON_CPU = (aten.silu_backward.default, aten.mish_backward.default, aten.native_channel_shuffle.default)
# A registration lasts as long as its library, and the backend lasts as long as the process.
_libraries: list[torch.library.Library] = []


def register_kernels(device: torch.device) -> None:
    """Registers the kernels of the device's factories, of torch's direct copies and of its composite ops."""
    library = torch.library.Library("aten", "IMPL")
    for op in MAKERS:
        library.impl(op, _factory(op, device), "PrivateUse1")
    for op in WHOLE_ON_CPU:
        library.impl(op, _whole(op), "PrivateUse1")
    library.impl("_copy_from", copy_from, "PrivateUse1")
    for op, composite in COMPOSITES.items():
        library.impl(op, composite, "AutogradPrivateUse1")
    _libraries.extend((library, *register_autocast(device.type)))
    torch.serialization.register_package(0, lambda storage: None, refuse_to_load(device.type))


def _factory(op: Any, device: torch.device) -> Callable[..., Tensor]:
    def make(*args: Any, **kwargs: Any) -> Tensor:
        check_index(kwargs.get("device"))
        # Memory of a pinned tensor would belong to a real device.
        return SimulatedTensor(op(*args, **{**kwargs, "device": "cpu", "pin_memory": False}), device)

    return make


def _whole(op: Any) -> Callable[..., Any]:
    return lambda *args, **kwargs: run_op(SimulatedTensor, op, args, kwargs)


def copy_from(source: Tensor, target: Tensor, non_blocking: bool = False) -> Tensor:
    """Returns `target` with the values of `source`; torch.tensor() copies this way, dispatch to Python switched off."""
    getattr(target, "raw", target).copy_(getattr(source, "raw", source))
    return target


def refuse_to_load(name: str) -> Callable[[Any, str], None]:
    """Returns what torch.load() calls to place a storage: it raises for the device, whose tensors have none."""

    def refuse(storage: Any, location: str) -> None:
        if location.partition(":")[0] == name:
            raise RuntimeError(
                f"torch.load(map_location={location!r}) cannot fill a simulated device; load with map_location='cpu', "
                f"then use load_state_dict() or .to({name!r})."
            )

    return refuse
