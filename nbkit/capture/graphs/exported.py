"""The graph of a program that torch.export, FX or dynamo made of a model."""

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
from nbkit.capture.graphs.fx_inputs import Given, changed_by, given_by, given_to
from nbkit.graphs.module_paths import Held, ModulePaths
from nbkit.graphs.rows import GraphRows

GRAPH = "export"


def exported_graph(program: ExportedProgram | GraphModule) -> dict[str, pd.DataFrame]:
    """The frames nodes, edges, graph_tensors and modules of a program; those of its subgraphs are further graphs.

    Nodes are its ops, parameters, buffers, constants, inputs and outputs in its own order; getitem on the results of an
    op is no node, but the src_port of an edge. An op that reads what another one has overwritten reads from that one,
    as long as both name the same node: views of it are not followed. Sizes that are symbols are null in shape.
    """
    rows, paths = GraphRows(), ModulePaths()
    if isinstance(program, ExportedProgram):
        walk = _Walk(rows, paths, program.graph_module, GRAPH, given_by(program), changed_by(program))
    else:
        walk = _Walk(rows, paths, program, GRAPH)
    walk.run()
    return {**rows.frames(), "modules": paths.frame(type(program).__name__)}


@dataclass
class _Value:
    """Where the value of an FX node comes from now, and what its row of graph_tensors will say."""

    node_id: int
    port: int | None
    name: str
    kind: str = "temporary"
    value: Any = None
    maker: int | None = None
    reads: int = 0
    writes: int = 1


class _Walk:
    """One graph of a program, node by node."""

    def __init__(
        self,
        rows: GraphRows,
        paths: ModulePaths,
        module: GraphModule,
        graph: str,
        given: Mapping[str, Given] = {},
        said_of_outputs: Sequence[dict[str, Any]] = (),
    ) -> None:
        self.rows, self.paths, self.module, self.graph = rows, paths, module, graph
        self.given, self.said_of_outputs = given, said_of_outputs
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
        given = self.given.get(node.name) or given_to(node)
        self.values[node] = self._held(given, fx_values.value_of(node) if given.value is None else given.value)

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
            self.attributes[path] = self._held(Given(kind, path, _holder(kind, path)), held)
        self.values[node] = self.attributes[path]

    def _is_buffer(self, path: str) -> bool:
        holder, _, name = path.rpartition(".")
        return name in self.module.get_submodule(holder)._buffers

    def _held(self, given: Given, value: Any) -> _Value:
        """The node of something from outside of the graph."""
        is_state = given.kind in ("parameter", "buffer")
        symbols = fx_values.symbolic_sizes(value)
        node_id = self.rows.node(
            self.graph,
            given.kind,
            given.name,
            module=given.module,
            attributes={**given.attributes, **({"sizes": symbols} if symbols else {})},
            **fx_values.tensor_columns(value),
        )
        size = fx_values.sizes(value)
        if is_state and size["numel"] is not None and size["size_bytes"] is not None:
            trainable = isinstance(value, Tensor) and value.requires_grad
            is_buffer = given.kind == "buffer"
            self.paths.holds(Held(given.name, id(value), size["numel"], size["size_bytes"], is_buffer, trainable))
        return _Value(node_id, 0, given.name, given.kind, value, node_id, writes=0)

    def _call(self, node: Node) -> None:
        source = node.args[0] if node.op == "call_function" and node.target is getitem else None
        if isinstance(source, Node) and isinstance(fx_values.value_of(source), list | tuple):
            made = self.values[source]
            result = fx_values.value_of(node)
            port = cast(int, node.args[1])
            self.values[node] = _Value(made.node_id, port, node.name, value=result, maker=made.node_id)
            return
        value = fx_values.value_of(node)
        inside = self._inside(str(node.target)) if node.op == "call_module" else []
        node_id = self._op(node, value)
        self._reads(node, node_id, inside)
        for other, back in fx_values.written(node):
            changed = self.values[other]
            changed.node_id, changed.port, changed.writes = node_id, back, changed.writes + 1
        self.values[node] = _Value(node_id, 0, node.name, value=value, maker=node_id)

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
            attributes=self._said(node, value, stack[-1][2] if stack else ""),
            **fx_values.tensor_columns(value),
        )

    def _said(self, node: Node, value: Any, call: str) -> dict[str, Any]:
        said = {}
        for place, (name, argument) in enumerate(fx_values.named_arguments(node)):
            read = fx_values.nodes_in(argument)
            if not read or (isinstance(argument, list | tuple) and len(read) < len(argument)):
                said[name or f"argument {place}"] = fx_values.plain(argument)
        graphs = [self.subgraphs[one] for one in node.all_input_nodes if one in self.subgraphs]
        if node.op == "call_module" and isinstance(inner := self.module.get_submodule(str(node.target)), GraphModule):
            graphs.append(self._subgraph(inner, str(node.target)))
        more = {"graphs": graphs, "sizes": fx_values.symbolic_sizes(value), "module_call": call}
        return {**said, **{name: text for name, text in more.items() if text}}

    def _subgraph(self, module: GraphModule, path: str) -> str:
        graph = f"{self.graph} {path}" if self.graph == GRAPH else f"{self.graph}.{path}"
        if (module, graph) not in self.waiting:
            self.waiting.append((module, graph))
        return graph

    def _inside(self, path: str) -> list[tuple[str, _Value]]:
        """Parameters and buffers of a module that is called as a whole, which it reads besides its arguments."""
        called = self.module.get_submodule(path)
        if isinstance(called, GraphModule):
            return []  # a further graph, whose own nodes read them
        found = []
        for kind, named in (("parameter", called.named_parameters()), ("buffer", called.named_buffers())):
            for name, tensor in named:
                whole = f"{path}.{name}"
                if whole not in self.attributes:
                    self.attributes[whole] = self._held(Given(kind, whole, _holder(kind, whole)), tensor)
                found.append((name, self.attributes[whole]))
        return found

    def _reads(self, node: Node, node_id: int, inside: list[tuple[str, _Value]]) -> None:
        port = 0
        for slot, argument in fx_values.named_arguments(node):
            for read in fx_values.nodes_in(argument):
                if read not in self.subgraphs:
                    self._edge(self.values[read], node_id, port, slot)
                    port += 1
        for slot, value in inside:
            self._edge(value, node_id, port, slot)
            port += 1

    def _edge(self, value: _Value, node_id: int, port: int, slot: str | None = None) -> None:
        value.reads += 1
        columns = fx_values.tensor_columns(value.value)
        columns.pop("device", None)
        self.rows.edge(value.node_id, node_id, value.name, src_port=value.port, dst_port=port, slot=slot, **columns)

    def _outputs(self, node: Node) -> None:
        leaves = _leaves(node.args[0])
        for place, leaf in enumerate(leaves):
            name = "output" if len(leaves) == 1 else f"output_{place}"
            said = self.said_of_outputs[place] if place < len(self.said_of_outputs) else {}
            constant = {} if isinstance(leaf, Node) else {"value": fx_values.plain(leaf)}
            columns = fx_values.tensor_columns(fx_values.value_of(leaf)) if isinstance(leaf, Node) else {}
            node_id = self.rows.node(self.graph, "output", name, attributes={**said, **constant}, **columns)
            if isinstance(leaf, Node):
                value = self.values[leaf]
                self._edge(value, node_id, 0)
                value.kind = "output" if value.kind == "temporary" else value.kind

    def _tensor(self, value: _Value) -> None:
        columns = fx_values.tensor_columns(value.value)
        columns.pop("device", None)
        if isinstance(value.value, list | tuple) and value.kind == "temporary":
            return  # its tensors have names of their own
        counts: dict[str, Any] = {"reads": value.reads, "writes": value.writes, **fx_values.sizes(value.value)}
        self.rows.tensor(self.graph, value.name, value.kind, node_id=value.maker, **columns, **counts)


def _holder(kind: str, path: str) -> str | None:
    return None if kind == "constant" else path.rpartition(".")[0]


def _leaves(out: Any) -> list[Any]:
    if isinstance(out, Mapping):
        return [leaf for item in out.values() for leaf in _leaves(item)]
    if isinstance(out, list | tuple):
        return [leaf for item in out for leaf in _leaves(item)]
    return [out]
