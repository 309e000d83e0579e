"""Says what the results of an ONNX model are: kinds, names, what each reads, where the exporter says it comes from."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from nbkit.readers.onnx import metadata as exporter
from nbkit.readers.onnx.graph import DEFAULT_DOMAINS, inner_graphs, op_name
from nbkit.readers.onnx.run.parse import array_of
from nbkit.readers.onnx.run.program import Program, reads
from nbkit.readers.onnx.types import attribute_value, dtype_name
from nbkit.trace.executions.execution import Array, Result

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto


@dataclass
class Origins:
    """Holds what the exporter left in a model: where parameters and nodes come from in the module."""

    is_torch: bool = False
    signature: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    kinds: Mapping[str, str | None] = field(default_factory=dict)  # of initializers, as the exporter writes them
    weights: Mapping[str, str] = field(default_factory=dict)  # paths of parameters by initializers of other names
    metadata: Mapping[str, dict[str, str]] = field(default_factory=dict)  # of nodes, by their outputs


def origins_of(model: ModelProto) -> Origins:
    """Returns what the exporter left in a model."""
    graph = model.graph
    signature = exporter.signature_of(exporter.metadata(graph))
    return Origins(
        model.producer_name == "pytorch",
        signature,
        {value.name: exporter.metadata(value).get(exporter.INPUT_KIND) for value in graph.value_info},
        exporter.linear_weights(graph.node, signature),
        {name: found for node in graph.node if (found := exporter.metadata(node)) for name in node.output},
    )


@dataclass(frozen=True)
class Leaf:
    """Holds an initializer: its dtype, its shape, and its values, which strings and sparse ones do not have here."""

    dtype: str
    shape: tuple[int, ...]
    value: Array | None


def leaf_of(program: Program, name: str) -> Leaf:
    """Returns an initializer; values that numpy does not have come as float32."""
    if name in program.sparse:
        item = program.sparse[name]
        return Leaf(dtype_name(item.values.data_type) or "none", tuple(item.dims), None)
    if name in program.arrays:
        array = program.arrays[name]
        return Leaf(str(array.dtype), array.shape, array)
    tensor = program.tensors[name]
    value = array_of(tensor, program.folder)
    if value is not None and value.dtype.isbuiltin != 1:  # ml_dtypes adds these to numpy
        value = value.astype(np.float32)
    return Leaf(dtype_name(tensor.data_type) or "none", tuple(tensor.dims), value)


class InitializerNames:
    """Gives initializers the paths of parameters; no path is given to two."""

    def __init__(self, program: Program, origins: Origins) -> None:
        self.origins = origins
        self._taken = set(program.initializers)

    def result(self, name: str, leaf: Leaf) -> Result:
        """Returns the result: a parameter if the exporter says so, else if it has several floating-point numbers."""
        origins = self.origins
        kind, path = exporter.KINDS.get(origins.kinds.get(name) or ""), origins.weights.get(name, name)
        if kind is None and name in origins.weights:
            kind = "parameter"
        if kind is None:
            is_number = leaf.dtype.startswith(("float", "bfloat"))
            is_unlisted = bool(origins.signature) and not origins.kinds.get(name)
            kind = "parameter" if is_number and not is_unlisted and np.prod(leaf.shape) > 1 else "constant"
        is_in_module = kind != "constant" and ("." in path or bool(origins.signature))
        module = path.rpartition(".")[0] if is_in_module else None
        if path != name and path in self._taken:
            path = name  # another one holds this parameter as well: tied weights, or one of them transposed
        self._taken.add(path)
        return Result(0, kind, path, leaf.dtype, leaf.shape, module=module)


def is_constant(node: NodeProto) -> bool:
    """Returns whether a node holds a value instead of computing one."""
    return node.op_type == "Constant" and node.domain in DEFAULT_DOMAINS


def node_result(node: NodeProto, output: str, call: int | None, sources: Mapping[str, int], origins: Origins) -> Result:
    """Returns the result for an output of a node, whose dtype and shape are still open.

    `sources` has the result_ids of what the node reads. onnxruntime drops metadata when it optimizes: those of the
    node that made an output of this name are taken.
    """
    found = exporter.metadata(node) or next(
        (origins.metadata[name] for name in node.output if name in origins.metadata), {}
    )
    module = exporter.scope_of(found, node.name, origins.is_torch).module
    source = exporter.source_of(found.get(exporter.STACK, ""))
    if is_constant(node):
        return Result(0, "constant", output, "", (), module=module, source=source)
    return Result(
        0,
        "op",
        output,
        "",
        (),
        call=call,
        position=list(node.output).index(output),
        sources=tuple(sources[name] for name in reads(node) if name in sources),
        op=op_name(node),
        module=module,
        source=source,
        arguments=_arguments(node),
    )


def _arguments(node: NodeProto) -> str:
    """Returns the attributes of a node as a JSON object, without its inner graphs."""
    graphs = {name.partition(" ")[0] for name, _ in inner_graphs(node)}
    return json.dumps({item.name: attribute_value(item) for item in node.attribute if item.name not in graphs})
