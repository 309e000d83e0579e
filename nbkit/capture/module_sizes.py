"""What the modules of a model are: type, parameters and buffers of each, shared ones counted once."""

from collections.abc import Collection, Mapping
from typing import NamedTuple

from torch import nn
from torch.nn.parameter import is_lazy


class Held(NamedTuple):
    """A parameter or buffer as far as the sizes of a module go."""

    elements: int
    size_bytes: int
    is_trainable: bool


class ModuleSize(NamedTuple):
    """One module; sizes include the modules in it."""

    type: str
    params: int
    trainable_params: int
    param_bytes: int
    buffer_bytes: int


def module_sizes(root: nn.Module) -> dict[str, ModuleSize]:
    """The size of every module by its named_modules() path."""
    params: dict[int, dict[int, Held]] = {}
    buffers: dict[int, dict[int, Held]] = {}
    return {
        path: _size(
            module,
            tensors_below(module, "_parameters", params).values(),
            tensors_below(module, "_buffers", buffers).values(),
        )
        for path, module in root.named_modules()
    }


def tensors_below(module: nn.Module, store: str, known: dict[int, dict[int, Held]]) -> Mapping[int, Held]:
    """Tensors that a module and those in it hold in `store`, by identity; `known` keeps what is worked out already.

    As module.parameters() gives them, which would walk the whole tree below each module again.
    """
    found = known.get(id(module))
    if found is None:
        found = known[id(module)] = {}  # before the children: a module may hold itself
        for child in module._modules.values():
            if child is not None:
                found.update(tensors_below(child, store, known))
        for tensor in getattr(module, store).values():
            if tensor is not None and not is_lazy(tensor):
                elements = tensor.numel()
                found[id(tensor)] = Held(elements, elements * tensor.element_size(), tensor.requires_grad)
    return found


def _size(module: nn.Module, params: Collection[Held], buffers: Collection[Held]) -> ModuleSize:
    return ModuleSize(
        type(module).__name__,
        sum([held.elements for held in params]),
        sum([held.elements for held in params if held.is_trainable]),
        sum([held.size_bytes for held in params]),
        sum([held.size_bytes for held in buffers]),
    )
