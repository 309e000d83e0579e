"""Builds small ONNX models."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSETS = {"": 20}


def value(name: str, shape: Sequence[int | str] | None, dtype: int = TensorProto.FLOAT) -> onnx.ValueInfoProto:
    """An input or output."""
    return helper.make_tensor_value_info(name, dtype, shape)


def node(op: str, inputs: str, outputs: str, **attributes: Any) -> onnx.NodeProto:
    """A node; names stand in one text with blanks between them, `-` for one that is left out."""
    names = [["" if name == "-" else name for name in text.split()] for text in (inputs, outputs)]
    return helper.make_node(op, *names, **attributes)


def model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[onnx.ValueInfoProto],
    outputs: str,
    weights: Mapping[str, Any] | None = None,
    opsets: Mapping[str, int] = OPSETS,
    functions: Sequence[onnx.FunctionProto] = (),
) -> onnx.ModelProto:
    """A model of one graph."""
    initializers = [numpy_helper.from_array(np.asarray(array), name) for name, array in (weights or {}).items()]
    found = [value(name, None) for name in outputs.split()]
    graph = helper.make_graph(list(nodes), "small", list(inputs), found, initializers)
    for output in graph.output:  # onnxruntime finds their types
        output.ClearField("type")
    imports = [helper.make_opsetid(domain, version) for domain, version in opsets.items()]
    return helper.make_model(graph, opset_imports=imports, functions=list(functions), ir_version=10)


def floats(*shape: int, seed: int = 0) -> Any:
    """Random float32 numbers."""
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def named(execution: Any) -> dict[str, Any]:
    """The results by name."""
    return {result.name: result for result in execution.results}


def values(execution: Any) -> dict[str, Any]:
    """The values of the ops by name."""
    return {result.name: execution.value(result.result_id) for result in execution.results if result.kind == "op"}
