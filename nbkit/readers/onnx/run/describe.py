"""Says what the results of an ONNX model are: kinds, names, what each reads, where the exporter says it comes from."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from nbkit.executions.execution import Result
from nbkit.readers.onnx import metadata as exporter
from nbkit.readers.onnx.graph import DEFAULT_DOMAINS, inner_graphs, op_name
from nbkit.readers.onnx.run.program import Array, Program, reads
from nbkit.readers.onnx.types import attribute_value, type_columns

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto


@dataclass
class Origins:
    """Holds what the exporter left in a model: where parameters and nodes come from in the module."""

    is_torch: bool = False
    signature: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    kinds: Mapping[str, str | None] = field(default_factory=dict)
    weights: Mapping[str, str] = field(default_factory=dict)
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


def input_result(name: str, dtype: str, value: Array) -> Result:
    """Returns the result for an input of the model."""
    return Result(0, "input", name, dtype, value.shape)


def initializer_result(name: str, dtype: str, value: Array, origins: Origins) -> Result:
    """Returns the result for an initializer: a parameter if the exporter says so, else if it has several numbers."""
    kind, path = exporter.KINDS.get(origins.kinds.get(name) or ""), origins.weights.get(name, name)
    if kind is None and name in origins.weights:
        kind = "parameter"
    if kind is None:
        is_number = dtype.startswith(("float", "bfloat"))
        is_unlisted = bool(origins.signature) and not origins.kinds.get(name)
        kind = "parameter" if is_number and not is_unlisted and value.size > 1 else "constant"
    is_in_module = kind != "constant" and ("." in path or bool(origins.signature))
    module = path.rpartition(".")[0] if is_in_module else None
    return Result(0, kind, path, dtype, value.shape, module=module)


def is_constant(node: NodeProto) -> bool:
    """Returns whether a node holds a value instead of computing one."""
    return node.op_type == "Constant" and node.domain in DEFAULT_DOMAINS


def node_results(
    node: NodeProto, call: int | None, ids: Mapping[str, int], origins: Origins
) -> list[tuple[str, Result]]:
    """Returns name and result of each output of a node; dtype and shape are still open."""
    found = exporter.metadata(node)
    for name in node.output:
        found = found or origins.metadata.get(name, {})
    scope = exporter.scope_of(found, node.name, origins.is_torch)
    constant = is_constant(node)
    sources = tuple(ids[name] for name in reads(node) if name in ids)
    return [
        (
            name,
            Result(
                0,
                "constant" if constant else "op",
                name,
                "",
                (),
                None if constant else call,
                position,
                sources,
                None if constant else op_name(node),
                scope.module,
                None,
                exporter.source_of(found.get(exporter.STACK, "")),
                None if constant else arguments_of(node),
            ),
        )
        for position, name in enumerate(node.output)
        if name
    ]


def arguments_of(node: NodeProto) -> str:
    """Returns the attributes of a node as a JSON object, without its inner graphs."""
    graphs = {name.partition(" ")[0] for name, _ in inner_graphs(node)}
    return json.dumps({item.name: attribute_value(item) for item in node.attribute if item.name not in graphs})


def declared_dtypes(program: Program) -> dict[str, str]:
    """Returns dtypes of the inputs as the model declares them."""
    return {value.name: str(type_columns(value.type)[0].get("dtype")) for value in program.inputs}
