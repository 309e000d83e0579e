"""Turns one graph of an ONNX model into rows: the main graph, a branch or loop body in it, or a function."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

from nbkit.graphs.module_paths import Held, ModulePaths
from nbkit.graphs.rows import GraphRows
from nbkit.graphs.values import Value
from nbkit.readers.element_sizes import sizes
from nbkit.readers.onnx import metadata as exporter
from nbkit.readers.onnx.types import attribute_value, constant_columns, tensor_columns, type_columns

if TYPE_CHECKING:
    from onnx import FunctionProto, GraphProto, NodeProto, TensorProto

# Texts that ONNX itself treats as one domain.
DEFAULT_DOMAINS = ("", "ai.onnx")


@dataclass
class Reading:
    """Holds what all graphs of a model share while they are read."""

    opsets: Mapping[str, int]
    is_torch: bool
    signature: Mapping[str, tuple[str, str]] = field(default_factory=dict)  # of torch.export, by placeholder
    rows: GraphRows = field(default_factory=GraphRows)
    modules: ModulePaths = field(default_factory=ModulePaths)
    graphs: set[str] = field(default_factory=set)
    domains: set[str] = field(default_factory=set)  # of the ops that were met

    def graph_name(self, wanted: str) -> str:
        """Returns the name, numbered if another graph has it."""
        name, number = wanted, 1
        while name in self.graphs:
            number += 1
            name = f"{wanted}#{number}"
        self.graphs.add(name)
        return name


class GraphReader:
    """Reads one graph; `outer` finds what a graph inside another one uses of that one."""

    def __init__(self, reading: Reading, graph: str, outer: GraphReader | None = None) -> None:
        self.reading, self.rows, self.outer = reading, reading.rows, outer
        self.graph = reading.graph_name(graph)
        self.values: dict[str, Value] = {}
        self.types: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {}
        self.captured: dict[str, None] = {}  # names of values of the graph around, in order of first use
        self.inner: list[tuple[NodeProto, int, str, GraphProto]] = []  # graphs in the attributes of nodes

    def read_graph(self, graph: GraphProto) -> None:
        """Reads all nodes and edges of a graph."""
        for value in (*graph.value_info, *graph.input, *graph.output):
            self.types[value.name] = type_columns(value.type)
        origins = exporter.origins_of(graph, self.reading.is_torch, self.reading.signature)
        held = {tensor.name for tensor in graph.initializer} | {item.values.name for item in graph.sparse_initializer}
        for value in graph.input:
            if value.name not in held:  # of old files all initializers are inputs, too
                self._entry("input", value.name)
        for tensor in (*graph.initializer, *(item.values for item in graph.sparse_initializer)):
            self._initializer(tensor, origins)
        for item in graph.sparse_initializer:
            self.values[item.values.name].columns["shape"] = list(item.dims)
        self._nodes(list(graph.node), [value.name for value in graph.output])

    def read_function(self, function: FunctionProto) -> None:
        """Reads all nodes and edges of a function's body."""
        for value in function.value_info:
            self.types[value.name] = type_columns(value.type)
        for name in function.input:
            self._entry("input", name)
        self._nodes(list(function.node), list(function.output))

    def _nodes(self, nodes: list[NodeProto], outputs: list[str]) -> None:
        made = [self._node(number, node) for number, node in enumerate(nodes)]
        for node, node_id in zip(nodes, made, strict=True):
            self._reads(node, node_id)
        for name in outputs:
            columns, attributes = self.types.get(name, ({}, {}))
            node_id = self.rows.node(self.graph, "output", name, attributes=attributes, **columns)
            self._edge(name, node_id, 0, None)
            if self.values[name].kind == "temporary":
                self.values[name].kind = "output"
        self._inner_graphs()
        for value in self.values.values():
            value.write(self.rows, self.graph, **sizes(value.columns.get("dtype"), value.columns.get("shape")))

    def _entry(self, kind: str, name: str, **more: Any) -> None:
        columns, attributes = self.types.get(name, ({}, {}))
        node_id = self.rows.node(self.graph, kind, name, attributes={**attributes, **more}, **columns)
        self.values[name] = Value(name, kind, columns).given_by(node_id)

    def _initializer(self, tensor: TensorProto, origins: exporter.Origins) -> None:
        columns = tensor_columns(tensor)
        size = sizes(**columns)
        kind, path, module = origins.initializer(tensor.name, columns["dtype"], size["numel"])
        attributes: dict[str, Any] = {"initializer": tensor.name} if path != tensor.name else {}
        external = {entry.key: entry.value for entry in tensor.external_data}
        if external:
            attributes["external_data"] = external
        node_id = self.rows.node(self.graph, kind, path, module=module, attributes=attributes, **columns)
        self.values[tensor.name] = Value(tensor.name, kind, columns).given_by(node_id)
        if module is not None and size["numel"] is not None and size["size_bytes"] is not None:
            self.reading.modules.holds(Held(path, path, size["numel"], size["size_bytes"], kind == "buffer"))

    def _node(self, number: int, node: NodeProto) -> int:
        self.reading.domains.add(node.domain)
        metadata = exporter.metadata(node)
        scope = exporter.scope_of(metadata, node.name, self.reading.is_torch)
        for path, kind in scope.modules:
            self.reading.modules.called(path, kind or None)
        columns, type_attributes = self.types.get(node.output[0], ({}, {})) if node.output else ({}, {})
        attributes = {**self._attributes(node), **type_attributes}
        if scope.torch_op:
            attributes["torch_op"] = scope.torch_op
        if more := {key: text for key, text in metadata.items() if key not in exporter.OURS}:
            attributes["metadata"] = more
        holds_value = is_constant(node)
        kind = "constant" if holds_value else "op"
        if holds_value and not columns:
            columns = constant_columns(attributes)
        node_id = self.rows.node(
            self.graph,
            kind,
            node.name or (node.output[0] if node.output else f"{node.op_type}_{number}"),
            op=None if holds_value else op_name(node),
            module=scope.module,
            source=exporter.source_of(metadata.get(exporter.STACK, "")),
            attributes=attributes,
            **columns,
        )
        for port, name in enumerate(node.output):
            if name:
                of_output = self.types.get(name, ({}, {}))[0] if port or not holds_value else columns
                value_kind = "constant" if holds_value else "temporary"
                self.values[name] = Value(name, value_kind, of_output).written_by(node_id, port)
        return node_id

    def _attributes(self, node: NodeProto) -> dict[str, Any]:
        attributes = {
            item.name: attribute_value(item) for item in node.attribute if not (item.graphs or item.HasField("g"))
        }
        if node.doc_string:
            attributes["doc_string"] = node.doc_string
        return attributes

    def _reads(self, node: NodeProto, node_id: int) -> None:
        for port, name in enumerate(node.input):
            if name:  # an input that is left out is an empty name
                self._edge(name, node_id, port, slot_name(node, port, self.reading.opsets.get(node.domain, 0)))
        for attribute, graph in inner_graphs(node):
            self.inner.append((node, node_id, attribute, graph))

    def _inner_graphs(self) -> None:
        """Reads the graphs in the nodes; what these take from around them, their node reads."""
        ports: dict[int, int] = {}
        seen: set[tuple[int, str]] = set()
        for node, node_id, attribute, graph in self.inner:
            reader = GraphReader(self.reading, f"{self.graph} {node.name or node.op_type} {attribute}", self)
            reader.read_graph(graph)
            for name in reader.captured:
                if (node_id, name) not in seen:
                    seen.add((node_id, name))
                    port = ports.get(node_id, len(node.input))
                    ports[node_id] = port + 1
                    self._edge(name, node_id, port, "captured")

    def _edge(self, name: str, node_id: int, port: int, slot: str | None) -> None:
        value = self.values.get(name)
        if value is None:
            value = self.values[name] = self._from_outside(name)
        value.read_by(self.rows, node_id, port, slot)

    def _from_outside(self, name: str) -> Value:
        """Makes a value of the graph around an input; one that no graph makes comes from nowhere."""
        outside_value = self.outer.find(name) if self.outer is not None else None
        if outside_value is None:
            return Value(name, "input", self.types.get(name, ({}, {}))[0])
        self.captured[name] = None
        columns = self.types.get(name, ({}, {}))[0] or outside_value.columns
        node_id = self.rows.node(self.graph, "input", name, attributes={"captured": True}, **columns)
        return Value(name, "input", columns).given_by(node_id)

    def find(self, name: str) -> Value | None:
        """Returns a value of this graph or of those around it."""
        return self.values.get(name) or (self.outer.find(name) if self.outer is not None else None)


def inner_graphs(node: NodeProto) -> Iterator[tuple[str, GraphProto]]:
    """Yields graphs in the attributes of a node, by the names of these."""
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.name, attribute.g
        for number, graph in enumerate(attribute.graphs):
            yield f"{attribute.name} {number}", graph


def is_constant(node: NodeProto) -> bool:
    """Returns whether a node holds a value instead of computing one."""
    return node.op_type == "Constant" and node.domain in DEFAULT_DOMAINS


def op_name(node: NodeProto) -> str:
    """Returns `MatMul`, `com.microsoft.FusedMatMul`."""
    return node.op_type if node.domain in DEFAULT_DOMAINS else f"{node.domain}.{node.op_type}"


def slot_name(node: NodeProto, port: int, version: int) -> str | None:
    """Returns what the op calls its input, if it is one of ONNX's own."""
    slots = _slots(node.op_type, version, node.domain)
    return slots[min(port, len(slots) - 1)] if slots else None


@cache
def _slots(op_type: str, version: int, domain: str) -> tuple[str, ...]:
    from onnx import defs

    try:
        schema = defs.get_schema(op_type, version, "" if domain in DEFAULT_DOMAINS else domain)
    except (defs.SchemaError, TypeError):  # of another domain, or of a version that this onnx does not know
        return ()
    return tuple(slot.name for slot in schema.inputs)
