"""Turns what the user gives as a model into a Program: a file, a model, or what torch.onnx.export returns."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from nbkit.errors import OptionError, TraceError, first_line
from nbkit.readers.onnx.reader import parsed_file
from nbkit.readers.onnx.run.program import INLINE_BYTES, Program

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto, TensorProto

Array = npt.NDArray[np.generic]


def model_of(model: Any) -> tuple[ModelProto, str | None, str]:
    """Returns the parsed model, the folder of its external data and its name. Raises OptionError, TraceError."""
    if isinstance(model, (str, Path)):
        path = Path(model)
        return parsed_file(path), str(path.parent.resolve()), path.name
    proto = getattr(model, "model_proto", model)
    if not hasattr(proto, "graph") or not hasattr(proto, "opset_import"):
        kind = type(model).__name__
        raise OptionError(
            f"A {kind} is no ONNX model: give a path, an onnx.ModelProto or what torch.onnx.export(dynamo=True) returns."
        )
    return proto, None, proto.graph.name or "graph"


def program_of(proto: ModelProto, folder: str | None, name: str) -> Program:
    """Returns the parts of a model, which stays as it is; calls of local functions are replaced by their nodes."""
    from onnx import ModelProto

    shell = ModelProto()
    for field, value in proto.ListFields():
        if field.name not in ("graph", "functions"):
            copied(shell, field.name, value)
    arrays, tensors = {}, {}
    for tensor in proto.graph.initializer:
        array = array_of(tensor, folder)
        if array is not None and array.nbytes > INLINE_BYTES and array.dtype.isbuiltin == 1:
            arrays[tensor.name] = array
        else:
            tensors[tensor.name] = tensor
    sparse = {item.values.name: item for item in proto.graph.sparse_initializer}
    held = tensors.keys() | arrays.keys() | sparse.keys()
    return Program(
        name,
        shell,
        tuple(named(_nodes(proto))),
        tuple(value for value in proto.graph.input if value.name not in held),
        tuple(value.name for value in proto.graph.output),
        tensors,
        arrays,
        sparse,
        folder,
    )


def copied(message: Any, field: str, value: Any) -> None:
    """Copies one field of a protobuf message."""
    target = getattr(message, field)
    if hasattr(target, "extend"):
        target.extend(value)
    elif hasattr(target, "CopyFrom"):
        target.CopyFrom(value)
    else:
        setattr(message, field, value)


def array_of(tensor: TensorProto, folder: str | None) -> Array | None:
    """Returns the values of an initializer; null of strings. Raises TraceError if they are missing or damaged."""
    from onnx import TensorProto, numpy_helper

    if tensor.data_type == TensorProto.STRING:
        return None
    if tensor.data_location == TensorProto.EXTERNAL:
        copy = TensorProto()  # reading external data writes them into the message
        copy.CopyFrom(tensor)
        tensor = copy
        if folder is None:
            raise TraceError(
                f"The values of {tensor.name!r} lie in another file, and a model in memory does not say where: "
                "give the path of the model."
            )
    try:
        return np.asarray(numpy_helper.to_array(tensor, folder or ""))
    except Exception as error:
        location = next((entry.value for entry in tensor.external_data if entry.key == "location"), None)
        if location is not None:
            raise TraceError(
                f"The values of {tensor.name!r} should be in {location} beside the model, and cannot be read there; "
                "put that file there."
            ) from error
        raise TraceError(
            f"The values of {tensor.name!r} cannot be read ({first_line(error)}): the model is damaged; write it anew."
        ) from error


def _nodes(proto: ModelProto) -> list[NodeProto]:
    if not proto.functions:
        return list(proto.graph.node)
    from onnx import ModelProto, inliner

    light = ModelProto()  # the inliner writes the model out and reads it, so leave the weights behind
    for field, value in proto.ListFields():
        if field.name != "graph":
            copied(light, field.name, value)
    for field, value in proto.graph.ListFields():
        if field.name not in ("initializer", "sparse_initializer", "value_info"):
            copied(light.graph, field.name, value)
    for tensor in proto.graph.initializer:
        light.graph.initializer.add(name=tensor.name, data_type=tensor.data_type, dims=tensor.dims)
    return list(inliner.inline_local_functions(light).graph.node)


def named(nodes: list[NodeProto]) -> list[NodeProto]:
    """Returns copies of the nodes that all have different names, so that an error says which of them it means."""
    from onnx import NodeProto

    seen: Counter[str] = Counter()
    result = []
    for node in nodes:
        copy = NodeProto()
        copy.CopyFrom(node)
        name = node.name or next(filter(None, node.output), node.op_type)
        seen[name] += 1
        copy.name = name if seen[name] == 1 else f"{name}#{seen[name]}"
        result.append(copy)
    return result
