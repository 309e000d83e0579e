"""Builds the module tree of a graph: modules, parameters and buffers as they were printed."""

from dataclasses import dataclass, field
from typing import Any

from nbkit.readers.element_sizes import element_bytes
from nbkit.readers.oneflow.dtypes import element_count
from nbkit.readers.oneflow.text.tensor_text import TensorText


@dataclass(slots=True)
class ModuleTree:
    """Holds modules by path in the order of their first line; types, arguments, calls; their tensors by path."""

    types: dict[str, str] = field(default_factory=dict)
    arguments: dict[str, str] = field(default_factory=dict)
    calls: dict[str, int] = field(default_factory=dict)
    parameters: dict[str, TensorText] = field(default_factory=dict)
    buffers: dict[str, TensorText] = field(default_factory=dict)
    is_done: bool = False

    @property
    def is_empty(self) -> bool:
        """Returns whether nothing was printed of it."""
        return not (self.types or self.parameters or self.buffers)

    def module(self, path: str, type_: str, arguments: str) -> None:
        """Takes a MODULE line."""
        self.types[path] = type_
        if arguments:
            self.arguments[path] = arguments


def merged(built: ModuleTree | None, listed: ModuleTree | None) -> ModuleTree:
    """Returns one tree of the one that was printed while building and the one of the listing, in the latter's order."""
    trees = [tree for tree in (listed, built) if tree is not None]
    made = ModuleTree()
    for tree in reversed(trees):
        made.arguments |= tree.arguments
        made.calls = tree.calls if built is tree else made.calls
        for path, of in tree.parameters.items():
            has_grad = of.has_grad or (path in made.parameters and made.parameters[path].has_grad)
            made.parameters[path] = TensorText(of.shape, of.dtype, has_grad)
        made.buffers |= tree.buffers
    for tree in trees:
        for path, type_ in tree.types.items():
            made.types.setdefault(path, type_)
    if built is None or not built.types:
        made.calls = dict.fromkeys(made.types, 1)
    return made


def module_rows(model: str, tree: ModuleTree, fixed: set[str]) -> list[dict[str, Any]]:
    """Returns rows of modules; `fixed` are the parameters that do not train."""
    totals = {path: {"params": 0, "trainable_params": 0, "param_bytes": 0, "buffer_bytes": 0} for path in tree.types}
    for path, tensor in tree.parameters.items():
        count, size = element_count(tensor.shape) or 0, _bytes(tensor)
        sums = {"params": count, "trainable_params": 0 if path in fixed else count, "param_bytes": size}
        _add(totals, path, sums)
    for path, tensor in tree.buffers.items():
        _add(totals, path, {"buffer_bytes": _bytes(tensor)})
    return [
        {
            "model": model,
            "module": path,
            "type": tree.types[path],
            "parent": parent_of(path, tree),
            "depth": _depth(path, tree),
            "calls": tree.calls.get(path, 0),
            **totals[path],
        }
        for path in tree.types
    ]


def parent_of(path: str, tree: ModuleTree) -> str | None:
    """Returns the nearest module around it that was printed; None at the top."""
    while path:
        path = path.rpartition(".")[0]
        if path in tree.types:
            return path
    return None


def _depth(path: str, tree: ModuleTree) -> int:
    depth, parent = 0, parent_of(path, tree)
    while parent is not None:
        depth, parent = depth + 1, parent_of(parent, tree)
    return depth


def _add(totals: dict[str, dict[str, int]], path: str, sums: dict[str, int]) -> None:
    """Adds to the module that holds the tensor, and to all above it."""
    while path:
        path = path.rpartition(".")[0]
        if path in totals:
            for name, value in sums.items():
                totals[path][name] += value


def _bytes(tensor: TensorText) -> int:
    return (element_count(tensor.shape) or 0) * (element_bytes(tensor.dtype) or 0)
