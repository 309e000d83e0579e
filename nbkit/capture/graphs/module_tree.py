"""Builds the module tree of a model as a graph: its modules, parameters and buffers, each where it stands."""

from collections.abc import Callable
from types import FunctionType
from typing import Any

import pandas as pd
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from nbkit.capture.frames.module_rows import sizes_frame
from nbkit.capture.frames.tensor_rows import dtype_text
from nbkit.capture.raw.source import is_user_code, location_text
from nbkit.capture.step.module_sizes import module_sizes
from nbkit.errors import first_line
from nbkit.graphs.rows import GraphRows

GRAPH = "module tree"


def module_tree(model: nn.Module) -> dict[str, pd.DataFrame]:
    """Returns the frames nodes, edges, graph_tensors and modules of a model that need not have run.

    A node per module, each followed by its parameters, its buffers and the modules in it. What stands under several
    paths (tied weights, a module that is used twice) has a node for each, of which all but the first say "same_as" in
    their attributes, and one row of graph_tensors. A tree has no dataflow: edges is empty.
    """
    rows = GraphRows()
    _Walk(rows).module("", model)
    sizes = module_sizes(model)
    label = type(model).__name__
    modules = sizes_frame([label] * len(sizes), list(sizes), list(sizes.values()), [0] * len(sizes))
    return {**rows.frames(), "modules": modules}


class _Walk:
    """Walks through the tree; `met` has the first path of every module and tensor, by identity."""

    def __init__(self, rows: GraphRows) -> None:
        self.rows = rows
        self.met: dict[int, str] = {}

    def module(self, path: str, module: nn.Module) -> None:
        first = self.met.setdefault(id(module), path)
        attributes = _repr_facts(module) if first == path else {"same_as": first}
        type_name = type(module).__name__
        self.rows.node(
            GRAPH, "module", path, op=type_name, module=path, source=_forward_line(module), attributes=attributes
        )
        if first != path:
            return
        for kind, held in (("parameter", module._parameters), ("buffer", module._buffers)):
            for name, tensor in held.items():
                if tensor is not None:
                    transient = kind == "buffer" and name in module._non_persistent_buffers_set
                    self.tensor(kind, path, name, tensor, {"persistent": False} if transient else {})
        for name, child in module._modules.items():
            if child is not None:
                self.module(_joined(path, name), child)

    def tensor(self, kind: str, holder: str, name: str, tensor: Tensor, attributes: dict[str, Any]) -> None:
        path = _joined(holder, name)
        first = self.met.setdefault(id(tensor), path)
        if kind == "parameter" and not tensor.requires_grad:
            attributes = {**attributes, "requires_grad": False}
        columns: dict[str, Any] = {"dtype": dtype_text(tensor.dtype), "shape": _shape(tensor)}
        same_as = {} if first == path else {"same_as": first}
        node = self.rows.node(
            GRAPH,
            kind,
            path,
            module=holder,
            device=str(tensor.device),
            attributes={**attributes, **same_as},
            **columns,
        )
        if first == path:
            numel = None if is_lazy(tensor) else tensor.numel()
            size_bytes = None if numel is None else numel * tensor.element_size()
            sizes: dict[str, Any] = {"numel": numel, "size_bytes": size_bytes}
            self.rows.tensor(GRAPH, path, kind, node_id=node, attributes=attributes, **columns, **sizes)


def _joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _shape(tensor: Tensor) -> list[int | None] | None:
    if is_lazy(tensor) or tensor.is_nested:
        return None
    return [size if type(size) is int else None for size in tensor.shape]


def _repr_facts(module: nn.Module) -> dict[str, Any]:
    """Returns what a module says about itself in the repr of its model; an error there is the class's own."""
    try:
        text = module.extra_repr()
    except Exception as error:
        return {"extra_repr_error": first_line(error)}
    training = {} if module.training else {"training": False}
    return {**({"extra_repr": text} if text else {}), **training}


def _forward_line(module: nn.Module) -> str | None:
    """Returns where the forward of the module's class is written; null for torch's own classes."""
    forward: Callable[..., Any] | None = getattr(type(module), "forward", None)
    if not isinstance(forward, FunctionType) or not is_user_code(forward.__code__):
        return None
    return location_text((forward.__code__, 0))
