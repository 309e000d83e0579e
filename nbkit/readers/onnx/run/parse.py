"""Takes apart what the user gives as a model: a file, a model, or what torch.onnx.export returns."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nbkit.errors import OptionError, TraceError, first_line
from nbkit.readers.onnx.graph import inner_graphs
from nbkit.readers.onnx.reader import parsed_file
from nbkit.readers.onnx.run.program import INLINE_BYTES, Program, in_order
from nbkit.trace.executions.execution import Array

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto, TensorProto

EXPECTED = "give a path, an onnx.ModelProto or what torch.onnx.export(dynamo=True) returns"


def model_of(model: object) -> tuple[ModelProto, str | None, str]:
    """Returns the parsed model, the folder of its external data and its name. Raises OptionError or TraceError."""
    if isinstance(model, (str, Path)):
        path = Path(model)
        return parsed_file(path), str(path.parent.resolve()), path.name
    proto: Any = getattr(model, "model_proto", model)
    if not hasattr(proto, "graph") or not hasattr(proto, "opset_import"):
        raise OptionError(f"The model is of type {type(model).__name__}, which is none of ONNX: {EXPECTED}.")
    if not (proto.graph.node or proto.graph.output):
        raise OptionError(f"The ONNX model has an empty graph: {EXPECTED}.")
    return proto, None, proto.graph.name or "graph"


def program_of(proto: ModelProto, folder: str | None) -> Program:
    """Returns the parts of a model, which stays as it is; calls of local functions are replaced by their nodes."""
    graph = proto.graph
    arrays, tensors = {}, {}
    for tensor in graph.initializer:
        array = array_of(tensor, folder)
        if array is not None and array.nbytes > INLINE_BYTES and array.dtype.isbuiltin == 1:
            arrays[tensor.name] = array
        else:
            tensors[tensor.name] = tensor if array is None or not tensor.external_data else _inside(tensor, array)
    sparse = {item.values.name: item for item in graph.sparse_initializer}
    names = (*(tensor.name for tensor in graph.initializer), *sparse)
    held = set(names)
    return Program(
        _copy(proto, without=("graph", "functions")),
        tuple(in_order(_named(_nodes(proto)))),
        tuple(value for value in graph.input if value.name not in held),
        tuple(value.name for value in graph.output),
        names,
        tensors,
        arrays,
        sparse,
        {value.name: value for value in graph.input if value.name in held},
        folder,
    )


def array_of(tensor: TensorProto, folder: str | None) -> Array | None:
    """Returns the values of an initializer; null of strings. Raises TraceError if they are missing or damaged."""
    from onnx import TensorProto, numpy_helper

    if tensor.data_type == TensorProto.STRING:
        return None
    location = None
    if tensor.data_location == TensorProto.EXTERNAL:
        location = next((entry.value for entry in tensor.external_data if entry.key == "location"), "")
        copy = TensorProto()  # reading external data writes them into the message
        copy.CopyFrom(tensor)
        tensor = copy
        if folder is None:
            raise TraceError(
                f"The values of {tensor.name!r} lie in {location!r}, and a model in memory does not say in which "
                "folder: give the path of the model."
            )
    try:
        return np.asarray(numpy_helper.to_array(tensor, folder or ""))
    except Exception as error:  # of onnx, numpy or the file system, as the damage happens to be
        if location is not None:
            raise TraceError(
                f"The values of {tensor.name!r} cannot be read: expected them in {location!r} beside the model; "
                "put the whole file there."
            ) from error
        raise TraceError(
            f"The values of {tensor.name!r} do not fit their shape or dtype ({first_line(error)}): "
            "write the model once more."
        ) from error


def _inside(tensor: TensorProto, array: Array) -> TensorProto:
    """Returns an initializer that holds the values which were in another file."""
    copy: TensorProto = _copy(tensor, without=("external_data", "data_location"))
    copy.raw_data = array.tobytes()
    return copy


def _copy(message: Any, without: tuple[str, ...]) -> Any:
    """Returns a copy of a message without some of its fields, whose memory is not touched."""
    result = type(message)()
    for field, value in message.ListFields():
        if field.name in without:
            continue
        target = getattr(result, field.name)
        if hasattr(target, "extend"):
            target.extend(value)
        elif hasattr(target, "CopyFrom"):
            target.CopyFrom(value)
        else:
            setattr(result, field.name, value)
    return result


def _nodes(proto: ModelProto) -> list[NodeProto]:
    if not proto.functions:
        return list(proto.graph.node)
    from onnx import inliner

    light = _copy(proto, without=("graph",))  # the inliner writes the model as bytes: the weights stay behind
    light.graph.CopyFrom(_copy(proto.graph, without=("initializer", "sparse_initializer", "value_info")))
    for tensor in proto.graph.initializer:
        light.graph.initializer.add(name=tensor.name, data_type=tensor.data_type, dims=tensor.dims)
    try:
        return list(inliner.inline_local_functions(light).graph.node)
    except Exception as error:  # onnx has no class of its own for it
        raise TraceError(
            f"The local functions of the model cannot be put in place of their calls ({first_line(error)}); "
            "write it without functions."
        ) from error


def _named(nodes: list[NodeProto]) -> list[NodeProto]:
    """Returns copies of the nodes that all have different names, so that an error says which of them it means."""
    seen: Counter[str] = Counter()
    result = []
    for node in nodes:
        copy = type(node)()
        copy.CopyFrom(node)
        name = node.name or next(filter(None, node.output), node.op_type)
        seen[name] += 1
        copy.name = name if seen[name] == 1 else f"{name}#{seen[name]}"
        for _, graph in inner_graphs(copy):
            _name_inner(graph)
        result.append(copy)
    return result


def _name_inner(graph: GraphProto) -> None:
    for node in graph.node:
        node.name = node.name or next(filter(None, node.output), node.op_type)
        for _, inner in inner_graphs(node):
            _name_inner(inner)
