"""Runs an ONNX model with onnxruntime and holds all its results as an Execution."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from nbkit.executions.execution import Array, Collector, Execution
from nbkit.executions.values import KEPT_BYTES, Values
from nbkit.readers.onnx.run.describe import (
    Origins,
    declared_dtypes,
    initializer_result,
    input_result,
    is_constant,
    node_results,
    origins_of,
)
from nbkit.readers.onnx.run.detached import Detached
from nbkit.readers.onnx.run.engine import computed, option_error, sentence
from nbkit.readers.onnx.run.inputs import paired
from nbkit.readers.onnx.run.parse import array_of, model_of, program_of
from nbkit.readers.onnx.run.program import Program
from nbkit.readers.onnx.run.session import RefusedError


def onnx_execution(
    model: Any,
    inputs: Mapping[str, Any] | Sequence[Any],
    *,
    optimized: str | None = None,
    kept_bytes: int = KEPT_BYTES,
    name: str | None = None,
) -> Execution:
    """Returns all results of a model that onnxruntime runs once on the CPU, without optimizing it."""
    proto, folder, own_name = model_of(model)
    program = program_of(proto, folder, own_name)
    fed = paired(program, inputs)
    run = _Run(program, origins_of(proto), Values(kept_bytes))
    run.leaves(fed)
    try:
        failures = run.nodes(fed)
    except RefusedError as error:
        raise option_error(error) from error
    results = tuple(run.collector.results)
    return Execution(
        name or own_name,
        "onnxruntime",
        results,
        {output: run.ids[output] for output in program.outputs if output in run.ids},
        run.collector.values,
        Detached(
            program,
            fed,
            {number: value for value, number in run.ids.items()},
            {result.result_id: result.dtype for result in results},
        ).recompute,
        sentence(failures[0]) if failures else None,
    )


class _Run:
    """Holds the results of a run by the names of their values."""

    def __init__(self, program: Program, origins: Origins, values: Values) -> None:
        self.program, self.origins = program, origins
        self.collector = Collector(values)
        self.ids: dict[str, int] = {}

    def leaves(self, fed: Mapping[str, Array]) -> None:
        """Adds inputs and initializers."""
        dtypes = declared_dtypes(self.program)
        for name, value in fed.items():
            self.ids[name] = self.collector.add(input_result(name, dtypes[name], value), value)
        for name, array in self.program.arrays.items():
            self._initializer(name, str(array.dtype), array)
        for name, tensor in self.program.tensors.items():
            value = array_of(tensor, self.program.folder)
            if value is not None:
                self._initializer(name, str(value.dtype), value)

    def _initializer(self, name: str, dtype: str, value: Array) -> None:
        held = value if value.dtype.isbuiltin == 1 else value.astype(np.float32)
        self.ids[name] = self.collector.add(initializer_result(name, dtype, value, self.origins), held)

    def nodes(self, fed: Mapping[str, Array]) -> list[RefusedError]:
        """Runs the nodes and adds their results; returns what failed."""
        nodes = sorted(self.program.nodes, key=lambda node: not is_constant(node))
        numbers = {}
        for node in nodes:
            if not is_constant(node):
                numbers[node.name] = len(numbers)
        makers = {name: node for node in nodes for name in node.output if name}

        def take(name: str, dtype: str, value: Any) -> None:
            node = makers[name]
            for own, result in node_results(node, numbers.get(node.name), self.ids, self.origins):
                if own == name:
                    shape = () if value is None else value.shape
                    kept = None if value is None or value.dtype == object else value
                    self.ids[name] = self.collector.add(replace(result, dtype=dtype, shape=shape), kept)

        return computed(self.program, nodes, fed, list(makers), take)
