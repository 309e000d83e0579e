"""Builds the modules frame, and names parameters and buffers, from the root models of a recording."""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pandas as pd
from torch import Tensor
from torch.nn.parameter import is_lazy
from torch.optim import Optimizer

from nbkit.capture.frames.string_columns import texts
from nbkit.capture.frames.tensor_columns import TensorColumns
from nbkit.capture.step.called_modules import CalledModules
from nbkit.capture.step.module_sizes import ModuleSize, module_sizes
from nbkit.schema import MODULES

NamedTensor = tuple[int, str, Tensor]  # number of the root, path of the parameter or buffer


def modules_frame(modules: CalledModules, labels: list[str]) -> pd.DataFrame:
    """Returns a row per module of each root model, in named_modules() order; one that is gone as it was when it ran."""
    calls: dict[tuple[int, str], int] = {}
    for called in modules.called:
        calls[called.root, called.path] = calls.get((called.root, called.path), 0) + called.calls
    keys: list[tuple[int, str]] = []  # root number and path
    sizes: list[ModuleSize] = []
    for number, root in enumerate(modules.roots.roots):
        module = root.module()
        of_root = root.sizes if module is None else root.sizes | module_sizes(module)
        keys += [(number, path) for path in of_root]
        sizes += of_root.values()
    models = [labels[number] for number, _ in keys]
    return sizes_frame(models, [path for _, path in keys], sizes, [calls.get(key, 0) for key in keys])


def sizes_frame(models: list[str], paths: list[str], sizes: list[ModuleSize], calls: list[int]) -> pd.DataFrame:
    """Returns the modules frame of these paths, each in the root model of that label, with size and number of calls."""
    counted = ModuleSize._fields[1:]
    counts = np.array([size[1:] for size in sizes], dtype=np.int64).reshape(-1, len(counted))
    columns = {
        "model": texts(models),
        "module": texts(paths),
        "type": texts([size.type for size in sizes]),
        "parent": texts([path.rpartition(".")[0] if path else None for path in paths]),
        "depth": np.array([path.count(".") + 1 if path else 0 for path in paths], dtype=np.int64),
        "calls": np.array(calls, dtype=np.int64),
    }
    return MODULES.frame(columns | dict(zip(counted, counts.T, strict=True)))


def tensor_names(
    named: Sequence[NamedTensor], tensors: TensorColumns
) -> tuple[dict[int, str], dict[int, tuple[int, str]]]:
    """Returns names of the tensor records that are parameters or buffers, and (root, module path) of their owners."""
    names: dict[int, str] = {}
    owners: dict[int, tuple[int, str]] = {}
    for (number, name, _), records in zip(named, tensors.records_of(tensor for *_, tensor in named), strict=True):
        for record in records:
            names.setdefault(record, name)
            owners.setdefault(record, (number, name.rpartition(".")[0]))
    return names, owners


def state_names(
    named: Sequence[NamedTensor], optimizers: Iterable[Optimizer], tensors: TensorColumns
) -> dict[int, str]:
    """Returns names of the tensor records that are gradients of parameters, or state that an optimizer has of them."""
    paths = {tensor: name for _, name, tensor in reversed(named) if tensor.is_leaf}
    held = [(f"{path}.grad", tensor.grad) for tensor, path in paths.items() if tensor.grad is not None]
    for optimizer in optimizers:
        for parameter, state in optimizer.state.items():
            if parameter in paths and isinstance(state, dict):
                held += [(f"{paths[parameter]}.{key}", value) for key, value in state.items()]
    held = [(name, value) for name, value in held if isinstance(value, Tensor)]
    found = zip(held, tensors.records_of(value for _, value in held), strict=True)
    return {record: name for (name, _), records in found for record in records}


def named_tensors(modules: CalledModules) -> Iterator[NamedTensor]:
    """Yields what named_parameters() and named_buffers() give, each of which would walk the tree once more."""
    for number, root in enumerate(modules.roots.roots):
        model = root.module()
        named = [] if model is None else [*model.named_modules()]
        for store in ("_parameters", "_buffers"):
            seen = set()
            for path, module in named:
                for name, tensor in getattr(module, store).items():
                    # One of a part that has not run yet has no size and refuses every question.
                    if tensor is not None and tensor not in seen and not is_lazy(tensor):
                        seen.add(tensor)
                        yield number, f"{path}.{name}" if path else name, tensor
