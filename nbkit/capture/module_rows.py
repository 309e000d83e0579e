"""The modules frame, and the names of parameters and buffers, from the root models of a recording."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

import pandas as pd
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from nbkit.capture.module_calls import ModuleCalls
from nbkit.capture.tensor_columns import TensorColumns
from nbkit.schema import MODULES


class Held(NamedTuple):
    """A parameter or buffer as far as the sizes of a module go."""

    elements: int
    size_bytes: int
    is_trainable: bool


def modules_frame(modules: ModuleCalls, labels: list[str]) -> pd.DataFrame:
    """One row per module of every root model that is still alive, in named_modules() order."""
    calls: dict[tuple[int, str], int] = {}
    for called in modules.called:
        calls[called.root, called.path] = calls.get((called.root, called.path), 0) + called.calls
    rows: list[dict[str, Any]] = []
    for number, root in enumerate(modules.roots.roots):
        module = root.module()
        named = list(module.named_modules()) if module is not None else []
        alive = {path for path, _ in named}
        params: dict[int, dict[int, Held]] = {}
        buffers: dict[int, dict[int, Held]] = {}
        for path, child in named:
            row = _row(labels[number], path, type(child).__name__, calls.get((number, path), 0))
            below = (tensors_below(child, "_parameters", params), tensors_below(child, "_buffers", buffers))
            rows.append(row | _sizes(*(held.values() for held in below)))
        # A model that is gone by now: only what ran of it is known.
        gone = [(path, count) for (owner, path), count in calls.items() if owner == number and path not in alive]
        rows += [_row(labels[number], path, "(gone)", count) | _sizes([], []) for path, count in gone]
    return MODULES.frame(rows) if rows else MODULES.frame({name: [] for name in MODULES.names})


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
                found[id(tensor)] = Held(tensor.numel(), tensor.numel() * tensor.element_size(), tensor.requires_grad)
    return found


def tensor_names(modules: ModuleCalls, tensors: TensorColumns) -> tuple[dict[int, str], dict[int, tuple[int, str]]]:
    """Names of the tensor records that are parameters or buffers, and (root, module path) of their owners."""
    names: dict[int, str] = {}
    owners: dict[int, tuple[int, str]] = {}
    for number, name, tensor in _named_tensors(modules):
        for record in tensors.records_of(tensor):
            names.setdefault(record, name)
            owners.setdefault(record, (number, name.rpartition(".")[0]))
    return names, owners


def _named_tensors(modules: ModuleCalls) -> Iterator[tuple[int, str, Tensor]]:
    for number, root in enumerate(modules.roots.roots):
        module = root.module()
        if module is not None:
            for name, tensor in (*module.named_parameters(), *module.named_buffers()):
                if not is_lazy(tensor):  # of a part that has not run yet: it has no size and refuses every question
                    yield number, name, tensor


def _row(label: str, path: str, type_name: str, calls: int) -> dict[str, Any]:
    return {
        "model": label,
        "module": path,
        "type": type_name,
        "parent": path.rpartition(".")[0] if path else None,
        "depth": path.count(".") + 1 if path else 0,
        "calls": calls,
    }


def _sizes(params: Collection[Held], buffers: Collection[Held]) -> dict[str, int]:
    return {
        "params": sum(held.elements for held in params),
        "trainable_params": sum(held.elements for held in params if held.is_trainable),
        "param_bytes": sum(held.size_bytes for held in params),
        "buffer_bytes": sum(held.size_bytes for held in buffers),
    }
