"""Pairs what the user gives with the inputs of an ONNX model: by name, or by place where that cannot be wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nbkit.executions.execution import Array
from nbkit.readers.onnx.run.parse import model_of, program_of
from nbkit.readers.onnx.run.program import Program


def paired_inputs(model: Any, inputs: Mapping[str, Any] | Sequence[Any]) -> dict[str, Array]:
    """Returns the values by the names of the model's inputs."""
    return paired(program_of(*model_of(model)), inputs)


def paired(program: Program, inputs: Mapping[str, Any] | Sequence[Any]) -> dict[str, Array]:
    """Returns the values by the names of the model's inputs."""
    import numpy as np

    names = [value.name for value in program.inputs]
    if not isinstance(inputs, Mapping):
        inputs = dict(zip(names, inputs, strict=True))
    return {name: np.asarray(inputs[name]) for name in names}
