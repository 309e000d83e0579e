"""Builds the graph of a program that torch.export, FX or dynamo made of a model."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import getitem
from typing import Any, cast

import pandas as pd
from torch import Tensor, nn
from torch.export import ExportedProgram
from torch.fx import GraphModule, Node

from nbkit.capture.frames.op_names import op_name
from nbkit.capture.graphs import fx_values
from nbkit.capture.graphs.fx_inputs import GraphInput, changed_by, inputs_of, unsigned_input
from nbkit.graphs.module_paths import Held, ModulePaths
from nbkit.graphs.rows import GraphRows
from nbkit.graphs.values import Value

GRAPH = "export"


def exported_graph(program: ExportedProgram | GraphModule) -> dict[str, pd.DataFrame]:
    """Returns the frames nodes, edges, graph_tensors and modules of a program; its subgraphs are further graphs.

    Nodes are its ops, parameters, buffers, constants, inputs and outputs in its own order; getitem on the results of an
    op is no node, but the src_port of an edge. An op that reads what another one has overwritten reads from that one,
    as long as both name the same node: views of it are not followed. Sizes that are symbols are null in shape.
    """
    rows, paths = GraphRows(), ModulePaths()
    if isinstance(program, ExportedProgram):
        walk = _Walk(rows, paths, program.graph_module, GRAPH, inputs_of(program), changed_by(program))
    else:
        walk = _Walk(rows, paths, program, GRAPH)
    walk.run()
    return {**rows.frames(), "modules": paths.frame(type(program).__name__)}


@dataclass(slots=True)
class _Value(Value):
    """Holds with a tensor the value that torch keeps of it: fake, described, or a list of such."""

    value: Any = None


class _Walk:
    """Walks one graph of a program, node by node."""

    def __init__(
        self,
        rows: GraphRows,
        paths: ModulePaths,
        module: GraphModule,
        graph: str,
        inputs: Mapping[str, GraphInput] = {},
        output_facts: Sequence[dict[str, Any]] = (),
    ) -> None:
        self.rows, self.paths, self.module, self.graph = rows, paths, module, graph
        self.inputs, self.output_facts = inputs, output_facts
        self.values: dict[Node, _Value] = {}
        self.attributes: dict[str, _Value] = {}  # what get_attr nodes stand for, by path
        self.subgraphs: dict[Node, str] = {}
        self.waiting: list[tuple[GraphModule, str]] = []

    def run(self) -> None:
        steps = {"placeholder": self._input, "get_attr": self._attribute, "output": self._outputs}
        for node in self.module.graph.nodes:
            steps.get(node.op, self._call)(node)
        for value in {id(value): value for value in (*self.attributes.values(), *self.values.values())}.values():
            self._tensor(value)
        for module, graph in self.waiting:
            _Walk(self.rows, self.paths, module, graph).run()

    def _input(self, node: Node) -> None:
        graph_input = self.inputs.get(node.name) or unsigned_input(node)
        value = fx_values.value_of(node) if graph_input.value is None else graph_input.value
        self.values[node] = self._held(graph_input, value)

    def _attribute(self, node: Node) -> None:
        path = str(node.target)
        held: Any = self.module
        for piece in path.split("."):
            held = getattr(held, piece, None)
        if isinstance(held, GraphModule):
            self.subgraphs[node] = self._subgraph(held, path)
            return
        if path not in self.attributes:
            kind = "parameter" if isinstance(held, nn.Parameter) else "buffer" if self._is_buffer(path) else "constant"
            self.attributes[path] = self._held(GraphInput(kind, path, _holder(kind, path)), held)
        self.values[node] = self.attributes[path]

    def _is_buffer(self, path: str) -> bool:
        holder, _, name = path.rpartition(".")
        return name in self.module.get_submodule(holder)._buffers

    def _held(self, graph_input: GraphInput, value: Any) -> _Value:
        """Adds the node of something from outside of the graph."""
        is_state = graph_input.kind in ("parameter", "buffer")
        symbols = fx_values.symbolic_sizes(value)
        node_id = self.rows.node(
            self.graph,
            graph_input.kind,
            graph_input.name,
            module=graph_input.module,
            attributes={**graph_input.attributes, **({"sizes": symbols} if symbols else {})},
            **fx_values.tensor_columns(value),
        )
        size = fx_values.sizes(value)
        if is_state and size["numel"] is not None and size["size_bytes"] is not None:
            trainable = isinstance(value, Tensor) and value.requires_grad
            is_buffer = graph_input.kind == "buffer"
            self.paths.holds(Held(graph_input.name, id(value), size["numel"], size["size_bytes"], is_buffer, trainable))
        return _value(graph_input.name, value, graph_input.kind).given_by(node_id)

    def _call(self, node: Node) -> None:
        source = node.args[0] if node.op == "call_function" and node.target is getitem else None
        if isinstance(source, Node) and isinstance(fx_values.value_of(source), list | tuple):
            result = _value(node.name, fx_values.value_of(node))
            self.values[node] = result.written_by(self.values[source].node_id, cast(int, node.args[1]))
            return
        value = fx_values.value_of(node)
        inside = self._inside(str(node.target)) if node.op == "call_module" else []
        node_id = self._op(node, value)
        self._reads(node, node_id, inside)
        for changed_node, back in fx_values.written(node):
            self.values[changed_node].written_by(node_id, back)
        self.values[node] = _value(node.name, value).written_by(node_id)

    def _op(self, node: Node, value: Any) -> int:
        stack = fx_values.module_stack(node)
        for path, kind, call in stack:
            self.paths.called(path, kind, call)
        op, module = str(node.target), stack[-1][0] if stack else None
        if node.op == "call_function":
            op = op_name(node.target)
        elif node.op == "call_method":
            op = f"torch.Tensor.{op}"
        else:
            called = self.module.get_submodule(op)
            module, op = op, type(called).__name__
            if not stack or stack[-1][0] != module:
                self.paths.called(module, op, node.name)
        return self.rows.node(
            self.graph,
            "op",
            node.name,
            op=op,
            module=module,
            phase=fx_values.phase(node),
            source=fx_values.source_line(node),
            attributes=self._node_attributes(node, value, stack[-1][2] if stack else ""),
            **fx_values.tensor_columns(value),
        )

    def _node_attributes(self, node: Node, value: Any, call: str) -> dict[str, Any]:
        attributes = {}
        for position, (name, argument) in enumerate(fx_values.named_arguments(node)):
            read = fx_values.nodes_in(argument)
            if not read or (isinstance(argument, list | tuple) and len(read) < len(argument)):
                attributes[name or f"argument {position}"] = fx_values.plain(argument)
        graphs = [self.subgraphs[read] for read in node.all_input_nodes if read in self.subgraphs]
        if node.op == "call_module" and isinstance(inner := self.module.get_submodule(str(node.target)), GraphModule):
            graphs.append(self._subgraph(inner, str(node.target)))
        more = {"graphs": graphs, "sizes": fx_values.symbolic_sizes(value), "module_call": call}
        return {**attributes, **{name: text for name, text in more.items() if text}}

    def _subgraph(self, module: GraphModule, path: str) -> str:
        graph = f"{self.graph} {path}" if self.graph == GRAPH else f"{self.graph}.{path}"
        if (module, graph) not in self.waiting:
            self.waiting.append((module, graph))
        return graph

    def _inside(self, path: str) -> list[tuple[str, _Value]]:
        """Returns parameters and buffers of a module called as a whole, which it reads besides its arguments."""
        called = self.module.get_submodule(path)
        if isinstance(called, GraphModule):
            return []  # a further graph, whose own nodes read them
        held_tensors = []
        for kind, named in (("parameter", called.named_parameters()), ("buffer", called.named_buffers())):
            for name, tensor in named:
                whole = f"{path}.{name}"
                if whole not in self.attributes:
                    self.attributes[whole] = self._held(GraphInput(kind, whole, _holder(kind, whole)), tensor)
                held_tensors.append((name, self.attributes[whole]))
        return held_tensors

    def _reads(self, node: Node, node_id: int, inside: list[tuple[str, _Value]]) -> None:
        port = 0
        for slot, argument in fx_values.named_arguments(node):
            for read in fx_values.nodes_in(argument):
                if read not in self.subgraphs:
                    self.values[read].read_by(self.rows, node_id, port, slot)
                    port += 1
        for slot, value in inside:
            value.read_by(self.rows, node_id, port, slot)
            port += 1

    def _outputs(self, node: Node) -> None:
        leaves = _leaves(node.args[0])
        for position, leaf in enumerate(leaves):
            name = "output" if len(leaves) == 1 else f"output_{position}"
            facts = self.output_facts[position] if position < len(self.output_facts) else {}
            constant = {} if isinstance(leaf, Node) else {"value": fx_values.plain(leaf)}
            columns = fx_values.tensor_columns(fx_values.value_of(leaf)) if isinstance(leaf, Node) else {}
            node_id = self.rows.node(self.graph, "output", name, attributes={**facts, **constant}, **columns)
            if isinstance(leaf, Node):
                value = self.values[leaf]
                value.read_by(self.rows, node_id, 0)
                value.kind = "output" if value.kind == "temporary" else value.kind

    def _tensor(self, value: _Value) -> None:
        # The tensors of a list have names of their own.
        if not isinstance(value.value, list | tuple) or value.kind != "temporary":
            value.write(self.rows, self.graph, **fx_values.sizes(value.value))


def _value(name: str, value: Any, kind: str = "temporary") -> _Value:
    columns = fx_values.tensor_columns(value)
    columns.pop("device", None)
    return _Value(name, kind, columns, value=value)


def _holder(kind: str, path: str) -> str | None:
    return None if kind == "constant" else path.rpartition(".")[0]


def _leaves(out: Any) -> list[Any]:
    if isinstance(out, Mapping):
        return [leaf for item in out.values() for leaf in _leaves(item)]
    if isinstance(out, list | tuple):
        return [leaf for item in out for leaf in _leaves(item)]
    return [out]
