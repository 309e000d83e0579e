"""Sizes up the modules of a model: type, parameters and buffers of each, shared ones counted once."""

from typing import NamedTuple

from torch import nn
from torch.nn.parameter import is_lazy


class HeldTensor(NamedTuple):
    """Describes a parameter or buffer as far as the sizes of a module go."""

    is_buffer: bool
    elements: int
    size_bytes: int
    is_trainable: bool


# By identity; a tensor may be held as both.
Tensors = dict[tuple[int, bool], HeldTensor]


class ModuleSize(NamedTuple):
    """Describes one module; sizes include the modules in it."""

    type: str
    params: int
    trainable_params: int
    param_bytes: int
    buffer_bytes: int


def module_sizes(root: nn.Module) -> dict[str, ModuleSize]:
    """Returns the size of every module by its named_modules() path."""
    known: dict[int, Tensors] = {}
    return {path: _size(module, tensors_below(module, known)) for path, module in root.named_modules()}


def tensors_below(module: nn.Module, known: dict[int, Tensors]) -> Tensors:
    """Returns the tensors that a module and those in it hold; `known` keeps what is worked out already.

    As module.parameters() gives them, which would walk the whole tree below each module again.
    """
    held = known.get(id(module))
    if held is None:
        held = known[id(module)] = {}  # before the children: a module may hold itself
        for child in module._modules.values():
            if child is not None:
                held.update(tensors_below(child, known))
        for store, is_buffer in ((module._parameters, False), (module._buffers, True)):
            for tensor in store.values():
                if tensor is not None and not is_lazy(tensor):
                    elements = tensor.numel()
                    size = elements * tensor.element_size()
                    held[id(tensor), is_buffer] = HeldTensor(is_buffer, elements, size, tensor.requires_grad)
    return held


def _size(module: nn.Module, tensors: Tensors) -> ModuleSize:
    params = trainable = param_bytes = buffer_bytes = 0
    for is_buffer, elements, size_bytes, is_trainable in tensors.values():
        if is_buffer:
            buffer_bytes += size_bytes
        else:
            params += elements
            trainable += elements * is_trainable
            param_bytes += size_bytes
    return ModuleSize(type(module).__name__, params, trainable, param_bytes, buffer_bytes)
