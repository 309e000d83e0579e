"""Holds an ONNX model in parts, so that models of some of its nodes can be built and run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from nbkit.readers.onnx.graph import inner_graphs

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto

Array = npt.NDArray[np.generic]
# Larger initializers are not written into each model that is built: onnxruntime gets their memory.
INLINE_BYTES = 4_096


@dataclass(frozen=True)
class Program:
    """Holds the parts of a model: `shell` has all of it but the graph; nodes have names that differ.

    `tensors` are the initializers of which a built model needs the text, `arrays` those whose memory it borrows;
    `inputs` leaves out inputs that are initializers. `folder` is where external data of inner graphs lie.
    """

    name: str
    shell: ModelProto
    nodes: tuple[NodeProto, ...]
    inputs: tuple[ValueInfoProto, ...]
    outputs: tuple[str, ...]
    tensors: Mapping[str, TensorProto]
    arrays: Mapping[str, Array]
    sparse: Mapping[str, Any]
    folder: str | None = None

    @property
    def initializers(self) -> set[str]:
        return self.tensors.keys() | self.arrays.keys() | self.sparse.keys()


def reads(node: NodeProto) -> list[str]:
    """Returns names of all values that a node reads: its inputs in order, then what its inner graphs capture."""
    found = [name for name in node.input if name]
    captured: dict[str, None] = {}
    for _, graph in inner_graphs(node):
        captured |= dict.fromkeys(_captured(graph))
    return found + [name for name in captured if name not in found]


def _captured(graph: Any) -> Iterator[str]:
    held = (*graph.initializer, *(item.values for item in graph.sparse_initializer), *graph.input)
    own = {value.name for value in held}
    for node in graph.node:
        yield from (name for name in reads(node) if name not in own)
        own |= set(node.output)
    yield from (value.name for value in graph.output if value.name not in own)


def needed(nodes: Sequence[NodeProto], wanted: Iterable[str], given: Iterable[str] = ()) -> list[NodeProto]:
    """Returns nodes from which the wanted values are made, in order; what is given is not made once more."""
    waiting, have = set(wanted), set(given)
    kept = []
    for node in reversed(nodes):
        if waiting.intersection(node.output):
            kept.append(node)
            waiting |= set(reads(node)) - have
    return kept[::-1]


def without(nodes: Sequence[NodeProto], failed: Iterable[str]) -> list[NodeProto]:
    """Returns nodes that need none of the named ones, in order."""
    names, lost, kept = set(failed), set[str](), []
    for node in nodes:
        if node.name in names or lost.intersection(reads(node)):
            lost |= set(node.output)
        else:
            kept.append(node)
    return kept


def built(
    program: Program, nodes: Sequence[NodeProto], inputs: Iterable[ValueInfoProto], outputs: Iterable[str]
) -> tuple[ModelProto, dict[str, Array]]:
    """Returns a model of these nodes and the memory of its larger initializers."""
    from onnx import ModelProto, TensorProto

    model = ModelProto()
    model.CopyFrom(program.shell)
    graph = model.graph
    graph.name = "graph"
    graph.node.extend(nodes)
    graph.input.extend(inputs)
    for name in outputs:
        graph.output.add().name = name
    used = {name for node in nodes for name in reads(node)}
    borrowed = {name: array for name, array in program.arrays.items() if name in used}
    graph.initializer.extend(tensor for name, tensor in program.tensors.items() if name in used)
    graph.sparse_initializer.extend(tensor for name, tensor in program.sparse.items() if name in used)
    for name, array in borrowed.items():
        tensor = graph.initializer.add()
        tensor.name, tensor.dims[:], tensor.data_type = name, array.shape, _element_type(array)
        tensor.data_location = TensorProto.EXTERNAL
        for key, text in (("location", name), ("offset", "0"), ("length", str(array.nbytes))):
            entry = tensor.external_data.add()
            entry.key, entry.value = key, text
    return model, borrowed


def _element_type(array: Array) -> int:
    from onnx import helper

    return int(helper.np_dtype_to_tensor_dtype(array.dtype))
