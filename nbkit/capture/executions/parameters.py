"""Reads the parameters and buffers of a module as arrays, and loads arrays into them in place."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves, tree_map_only

from nbkit.capture.executions.arrays import Array, array_of
from nbkit.compat.torch_versions import original_of

Inputs = TypeVar("Inputs")


def module_of(source: Any) -> nn.Module | None:
    """Returns the module that a side of opalign is, of a compiled one the one below; null where it is none."""
    source = original_of(source) or source
    return source if isinstance(source, nn.Module) else None


def held_tensors(model: nn.Module) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Returns what state_dict() has of a model, tied ones once, and the first name of those with another name."""
    saved = model.state_dict(keep_vars=True)
    first: dict[int, str] = {}
    tensors: dict[str, Tensor] = {}
    tied: dict[str, str] = {}
    both = [*model.named_parameters(remove_duplicate=False), *model.named_buffers(remove_duplicate=False)]
    for name, tensor in both:
        if name not in saved:
            continue
        if id(tensor) in first:
            tied[name] = first[id(tensor)]
        else:
            first[id(tensor)] = name
            tensors[name] = tensor
    return tensors, tied


def on_device_of(source: Any, inputs: Inputs) -> Inputs:
    """Returns inputs with their tensors moved to the one device that a module is on.

    They stay as they are where the module is on several devices or one of them is there already: then the user has
    chosen their places.
    """
    model = module_of(source)
    devices = {tensor.device for tensor in held_tensors(model)[0].values()} if model is not None else set()
    given = [leaf for leaf in tree_leaves(inputs) if isinstance(leaf, Tensor)]
    if len(devices) != 1 or devices & {tensor.device for tensor in given}:
        return inputs
    (device,) = devices
    moved: Inputs = tree_map_only(
        Tensor, lambda tensor: tensor.detach().to(device).requires_grad_(tensor.requires_grad), inputs
    )
    return moved


def arrays_of(tensors: Mapping[str, Tensor]) -> dict[str, Array]:
    """Returns the values of tensors by name, without those that have none, such as on the meta device."""
    return {name: array for name, tensor in tensors.items() if (array := array_of(tensor)) is not None}


def load(tensors: Mapping[str, Tensor], values: Mapping[str, Array]) -> None:
    """Writes values into tensors in place, in their dtype and on their device; all are made before the first is."""
    made = [(tensors[name], _like(tensors[name], value)) for name, value in values.items()]
    with torch.no_grad():
        for tensor, value in made:
            tensor.copy_(value)


@contextmanager
def holding(tensors: Mapping[str, Tensor], values: Mapping[str, Array]) -> Iterator[None]:
    """Has tensors hold values while entered, and what they held before at exit."""
    before = {name: tensors[name].detach().clone() for name in values}
    try:
        load(tensors, values)
        yield
    finally:
        with torch.no_grad():
            for name, value in before.items():
                tensors[name].copy_(value)


def _like(tensor: Tensor, value: Array) -> Tensor:
    return torch.from_numpy(np.array(value, order="C")).reshape(tensor.shape).to(tensor.device, tensor.dtype)
