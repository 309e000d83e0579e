"""Builds the module tree of a graph: modules and their tensors as they were printed."""

import re
from dataclasses import dataclass, field, replace
from typing import Any

from nbkit.graphs.rows import shape_text
from nbkit.readers.element_sizes import element_bytes
from nbkit.readers.oneflow.dtypes import element_count
from nbkit.readers.oneflow.text.operator_line import sbp_text
from nbkit.readers.oneflow.text.tensor_text import TensorText

# What an input or output of a module is called: the module's path, which of them, and its position.
PASSED = re.compile(r"_(.+?)[-_](?:input|output)[._]\d")


@dataclass(slots=True)
class ModuleTree:
    """Holds modules by path in the order of their first line; types, arguments, calls; their tensors by path.

    `passed` are inputs and outputs by kind and name.
    """

    types: dict[str, str] = field(default_factory=dict)
    arguments: dict[str, str] = field(default_factory=dict)
    calls: dict[str, int] = field(default_factory=dict)
    parameters: dict[str, TensorText] = field(default_factory=dict)
    buffers: dict[str, TensorText] = field(default_factory=dict)
    passed: dict[tuple[str, str], TensorText] = field(default_factory=dict)
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
            made.parameters[path] = replace(of, has_grad=has_grad)
        made.buffers |= tree.buffers
        made.passed |= tree.passed
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


def tensor_rows(model: str, graph: str, tree: ModuleTree) -> list[dict[str, Any]]:
    """Returns rows of module_tensors: inputs and outputs, then what modules hold; `graph` is what names call it."""
    held = [(kind, path, of) for kind in ("parameter", "buffer") for path, of in getattr(tree, f"{kind}s").items()]
    return [
        {
            "model": model,
            "module": _module_of(name, graph) if kind in ("input", "output") else name.rpartition(".")[0],
            "kind": kind,
            "name": name,
            "dtype": of.dtype,
            "shape": None if of.shape is None else shape_text(of.shape),
            "sbp": sbp_text(of.sbp),
            "device": of.device,
            "is_lazy": of.is_lazy,
            "requires_grad": of.has_grad or of.grad_fn is not None,
            "grad_fn": of.grad_fn,
        }
        for kind, name, of in [*((kind, name, of) for (kind, name), of in tree.passed.items()), *held]
    ]


def _module_of(name: str, graph: str) -> str | None:
    """Returns the path of the module that an input or output is of, "" for the graph's own; None if it says none."""
    found = PASSED.match(name)
    return None if found is None else "" if found[1] == graph else found[1]


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
