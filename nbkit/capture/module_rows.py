"""The modules frame, and the names of parameters and buffers, from the root models of a recording."""

from collections.abc import Iterator
from typing import Any

import pandas as pd
from torch import Tensor
from torch.nn.parameter import is_lazy

from nbkit.capture.module_calls import ModuleCalls
from nbkit.capture.module_sizes import module_sizes
from nbkit.capture.tensor_columns import TensorColumns
from nbkit.schema import MODULES


def modules_frame(modules: ModuleCalls, labels: list[str]) -> pd.DataFrame:
    """One row per module of every root model, in named_modules() order; one that is gone is as it was when it ran."""
    calls: dict[tuple[int, str], int] = {}
    for called in modules.called:
        calls[called.root, called.path] = calls.get((called.root, called.path), 0) + called.calls
    rows: list[dict[str, Any]] = []
    for number, root in enumerate(modules.roots.roots):
        module = root.module()
        sizes = root.sizes if module is None else root.sizes | module_sizes(module)
        rows += [
            _place(labels[number], path, calls.get((number, path), 0)) | size._asdict() for path, size in sizes.items()
        ]
    return MODULES.frame(rows) if rows else MODULES.frame({name: [] for name in MODULES.names})


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


def _place(label: str, path: str, calls: int) -> dict[str, Any]:
    return {
        "model": label,
        "module": path,
        "parent": path.rpartition(".")[0] if path else None,
        "depth": path.count(".") + 1 if path else 0,
        "calls": calls,
    }
