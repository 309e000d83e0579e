"""Holds an ONNX model in parts, so that models of some of its nodes can be built and run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from nbkit.readers.onnx.graph import inner_graphs
from nbkit.trace.executions.execution import Array

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto, SparseTensorProto, TensorProto, ValueInfoProto

# Larger initializers are not written into each model that is built: onnxruntime borrows their memory.
INLINE_BYTES = 4_096


@dataclass(frozen=True)
class Program:
    """Holds the parts of a model: `shell` has all of it but the graph; nodes have names that differ.

    Initializers are `arrays`, whose memory built models borrow, `tensors`, which are written into them, or `sparse`;
    `initializers` has the names in the model's order. Those are not among `inputs`; `overridable` has those that the
    model lists as inputs, too. `folder` is where external data of inner graphs lie.
    """

    shell: ModelProto
    nodes: tuple[NodeProto, ...]
    inputs: tuple[ValueInfoProto, ...]
    outputs: tuple[str, ...]
    initializers: tuple[str, ...]
    tensors: Mapping[str, TensorProto]
    arrays: Mapping[str, Array]
    sparse: Mapping[str, SparseTensorProto]
    overridable: Mapping[str, ValueInfoProto]
    folder: str | None = None

    def with_inputs(self, inputs: Mapping[str, ValueInfoProto]) -> Program:
        """Returns the program with these as inputs, too: an initializer of that name is none any more."""
        return replace(
            self,
            inputs=(*(value for value in self.inputs if value.name not in inputs), *inputs.values()),
            initializers=tuple(name for name in self.initializers if name not in inputs),
            tensors={name: tensor for name, tensor in self.tensors.items() if name not in inputs},
            arrays={name: array for name, array in self.arrays.items() if name not in inputs},
            sparse={name: tensor for name, tensor in self.sparse.items() if name not in inputs},
        )


def reads(node: NodeProto) -> list[str]:
    """Returns names of all values that a node reads: its inputs in order, then what its inner graphs capture."""
    found = [name for name in node.input if name]
    captured: dict[str, None] = {}
    for _, graph in inner_graphs(node):
        captured |= dict.fromkeys(_captured(graph))
    return found + [name for name in captured if name not in found]


def _captured(graph: GraphProto) -> Iterator[str]:
    held = (*graph.initializer, *(item.values for item in graph.sparse_initializer), *graph.input)
    own = {value.name for value in held}
    for node in graph.node:
        yield from (name for name in reads(node) if name not in own)
        own |= set(node.output)
    yield from (value.name for value in graph.output if value.name not in own)


def in_order(nodes: Sequence[NodeProto]) -> list[NodeProto]:
    """Returns the nodes so that each stands behind those that it needs; they stay as they are where that is so."""
    makers = {name: node.name for node in nodes for name in node.output if name}
    waiting, done = list(nodes), set[str]()
    result: list[NodeProto] = []
    while waiting:
        later = []
        for node in waiting:
            if all(makers[name] in done for name in reads(node) if name in makers):
                result.append(node)
                done.add(node.name)
            else:
                later.append(node)
        if len(later) == len(waiting):  # a circle, which onnxruntime is to refuse
            return result + later
        waiting = later
    return result


def needed(nodes: Sequence[NodeProto], wanted: Iterable[str], given: Iterable[str] = ()) -> list[NodeProto]:
    """Returns nodes from which the wanted values are made, in order; what is given is not made once more."""
    waiting, have = set(wanted), set(given)
    kept = []
    for node in reversed(nodes):
        if waiting.intersection(node.output):
            kept.append(node)
            waiting |= set(reads(node)) - have
    return kept[::-1]


def without(nodes: Sequence[NodeProto], failed: str) -> list[NodeProto]:
    """Returns the nodes that do not need the named one, in order."""
    lost, kept = set[str](), []
    for node in nodes:
        if node.name == failed or lost.intersection(reads(node)):
            lost |= set(node.output)
        else:
            kept.append(node)
    return kept


def built(
    program: Program, nodes: Sequence[NodeProto], inputs: Iterable[ValueInfoProto], outputs: Iterable[str]
) -> tuple[ModelProto, dict[str, Array]]:
    """Returns a model of these nodes, and the memory of its larger initializers."""
    from onnx import ModelProto, TensorProto, helper

    model = ModelProto()
    model.CopyFrom(program.shell)
    graph = model.graph
    graph.name = "graph"
    graph.node.extend(nodes)
    graph.input.extend(inputs)
    wanted = [*outputs]
    for name in wanted:
        graph.output.add().name = name
    used = {*wanted, *(name for node in nodes for name in reads(node))}  # an initializer may be an output
    borrowed = {name: array for name, array in program.arrays.items() if name in used}
    graph.initializer.extend(tensor for name, tensor in program.tensors.items() if name in used)
    graph.sparse_initializer.extend(tensor for name, tensor in program.sparse.items() if name in used)
    for name, array in borrowed.items():
        # Says "in a file"; no file is opened, since onnxruntime gets the memory under this name.
        tensor = graph.initializer.add(name=name, dims=array.shape, data_location=TensorProto.EXTERNAL)
        tensor.data_type = int(helper.np_dtype_to_tensor_dtype(array.dtype))
        for key, text in (("location", name), ("offset", "0"), ("length", str(array.nbytes))):
            tensor.external_data.add(key=key, value=text)
    return model, borrowed
