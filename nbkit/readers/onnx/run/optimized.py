"""Lets onnxruntime optimize a model and reads the model that it then runs, with its fused ops."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from shutil import copytree
from tempfile import TemporaryDirectory

import numpy as np

from nbkit.errors import OptionError, nearest
from nbkit.readers.onnx.metadata import Origins
from nbkit.readers.onnx.reader import parsed_file
from nbkit.readers.onnx.run.parse import program_of
from nbkit.readers.onnx.run.program import Program, built
from nbkit.readers.onnx.run.session import lend, plain_options, runtime, started
from nbkit.trace.executions.execution import Array

LEVELS = {"basic": "ORT_ENABLE_BASIC", "extended": "ORT_ENABLE_EXTENDED", "all": "ORT_ENABLE_ALL"}
# A file of protobuf holds 2 GB; weights that are near to that go into a file beside it.
ONE_FILE_BYTES = 1 << 30


def optimized_program(program: Program, level: str, dump: Path | None = None) -> Program:
    """Returns the program that onnxruntime makes of one, for the CPU of this machine. Raises RefusedError.

    Its file, and that of weights beside it where they are large, are copied into the folder `dump`.
    """
    if level not in LEVELS:
        raise OptionError(f"optimized must be a level of onnxruntime, got {level!r}; {nearest(level, LEVELS)}")
    model, borrowed = built(program, program.nodes, program.inputs, program.outputs)
    options = plain_options(program.folder)
    options.graph_optimization_level = getattr(runtime().GraphOptimizationLevel, LEVELS[level])
    with TemporaryDirectory(prefix="nbkit-") as folder:
        path = Path(folder) / "optimized.onnx"
        options.optimized_model_filepath = str(path)
        if sum(array.nbytes for array in borrowed.values()) > ONE_FILE_BYTES:
            options.add_session_config_entry("session.optimized_model_external_initializers_file_name", "weights.bin")
        lent = lend(options, borrowed)
        started(model, options)
        del lent
        if dump is not None:
            copytree(folder, dump, dirs_exist_ok=True)
        saved = program_of(parsed_file(path), folder)
    return replace(saved, folder=program.folder)


def same_weights(program: Program, before: Program, origins: Origins) -> Origins:
    """Returns origins that know initializers which onnxruntime renamed, by their values: equal, or transposed."""
    weights, kinds = dict(origins.weights), dict(origins.kinds)
    known = set(before.initializers)
    # What the exporter does not list it has computed; without such a list, any of them may be a parameter.
    sources = {
        name: array
        for name, array in before.arrays.items()
        if not origins.signature or origins.kinds.get(name) or name in origins.weights
    }
    for name, array in program.arrays.items():
        if name not in known and (source := _equal(array, sources)) is not None:
            weights[name], kinds[name] = weights.get(source, source), kinds.get(source)
    return replace(origins, weights=weights, kinds=kinds)


def _equal(array: Array, others: Mapping[str, Array]) -> str | None:
    for name, other in others.items():
        if array.dtype.kind == "f" and any(_same(array, one) for one in _forms(other)):
            return name
    return None


def _forms(array: Array) -> Iterable[Array]:
    return (array,) if array.ndim != 2 else (array, array.T)


def _same(array: Array, other: Array) -> bool:
    if array.shape != other.shape:
        return False
    few = (slice(0, 4),) * array.ndim  # tells most of them apart
    return np.array_equal(array[few], other[few]) and np.array_equal(array, other)
