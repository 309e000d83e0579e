"""Says what the results of an ONNX model are: kinds, names, what each reads, where the exporter says it comes from."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from nbkit.readers.onnx import metadata as exporter
from nbkit.readers.onnx.graph import inner_graphs, is_constant, op_name
from nbkit.readers.onnx.metadata import Origins
from nbkit.readers.onnx.run.parse import array_of
from nbkit.readers.onnx.run.program import Program, reads
from nbkit.readers.onnx.types import attribute_value, dtype_name
from nbkit.trace.executions.execution import Array, Result

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto


def origins_of(model: ModelProto) -> Origins:
    """Returns what the exporter left in a model."""
    graph = model.graph
    found = {name: kept for node in graph.node if (kept := exporter.metadata(node)) for name in node.output}
    signature = exporter.signature_of(exporter.metadata(graph))
    return replace(exporter.origins_of(graph, model.producer_name == "pytorch", signature), metadata=found)


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
        """Returns the result."""
        kind, path, module = self.origins.initializer(name, leaf.dtype, prod(leaf.shape))
        if path != name and path in self._taken:
            path = name  # another one holds this parameter as well: tied weights, or one of them transposed
        self._taken.add(path)
        return Result(0, kind, path, leaf.dtype, leaf.shape, module=module)


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
