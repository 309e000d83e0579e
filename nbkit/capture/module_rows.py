"""The modules frame, and the names of parameters and buffers, from the root models of a recording."""

from collections.abc import Iterable, Iterator
from typing import Any

import pandas as pd
from torch import Tensor, nn

from nbkit.capture.module_calls import ModuleCalls
from nbkit.capture.tensor_registry import TensorRegistry
from nbkit.schema import MODULES


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
        rows += [_row(labels[number], path, child, calls.get((number, path), 0)) for path, child in named]
        # A model that is gone by now: only what ran of it is known.
        rows += [
            _gone(labels[number], path, count)
            for (owner, path), count in calls.items()
            if owner == number and path not in alive
        ]
    return MODULES.frame(rows) if rows else MODULES.frame({name: [] for name in MODULES.names})


def tensor_names(modules: ModuleCalls, registry: TensorRegistry) -> tuple[dict[int, str], dict[int, tuple[int, str]]]:
    """Names of the tensor records that are parameters or buffers, and (root, module path) of their owners."""
    names: dict[int, str] = {}
    owners: dict[int, tuple[int, str]] = {}
    for number, name, tensor in _named_tensors(modules):
        for record in registry.records_of(tensor):
            names.setdefault(record, name)
            owners.setdefault(record, (number, name.rpartition(".")[0]))
    return names, owners


def _named_tensors(modules: ModuleCalls) -> Iterator[tuple[int, str, Tensor]]:
    for number, root in enumerate(modules.roots.roots):
        module = root.module()
        if module is not None:
            for name, tensor in (*module.named_parameters(), *module.named_buffers()):
                yield number, name, tensor


def _row(label: str, path: str, module: nn.Module, calls: int) -> dict[str, Any]:
    parameters = list(module.parameters())
    return {
        **_place(label, path, calls),
        "type": type(module).__name__,
        "params": _elements(parameters),
        "trainable_params": _elements(parameter for parameter in parameters if parameter.requires_grad),
        "param_bytes": _bytes(parameters),
        "buffer_bytes": _bytes(module.buffers()),
    }


def _gone(label: str, path: str, calls: int) -> dict[str, Any]:
    return {
        **_place(label, path, calls),
        "type": "(gone)",
        "params": 0,
        "trainable_params": 0,
        "param_bytes": 0,
        "buffer_bytes": 0,
    }


def _place(label: str, path: str, calls: int) -> dict[str, Any]:
    return {
        "model": label,
        "module": path,
        "parent": path.rpartition(".")[0] if path else None,
        "depth": path.count(".") + 1 if path else 0,
        "calls": calls,
    }


def _elements(tensors: Iterable[Tensor]) -> int:
    return sum(tensor.numel() for tensor in tensors)


def _bytes(tensors: Iterable[Tensor]) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)
