"""Runs what opalign is given as a side: a model of torch or ONNX, a program, a recorded trace."""

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from nbkit.errors import OptionError
from nbkit.trace.executions.arrays import as_array
from nbkit.trace.executions.execution import Execution
from nbkit.trace.trace import Trace
from nbkit.verbs.alignment.accepted import Inputs, checked_recording, is_onnx
from nbkit.verbs.load import load


def execution_of(source: Any, inputs: Inputs, *, backward: bool, kept_bytes: int, side: str = "left") -> Execution:
    """Returns the execution of one side. Raises OptionError or TraceError for what cannot be run."""
    if isinstance(source, Execution):
        return source
    if isinstance(source, str | PathLike):
        if Path(source).suffix.lower() == ".onnx":
            return _onnx(source, inputs, kept_bytes=kept_bytes)
        source = load(source)
    if isinstance(source, Trace):
        from nbkit.analysis.align.traces.from_trace import trace_execution

        return trace_execution(checked_recording(source, side))
    if is_onnx(source):
        return _onnx(source, inputs, kept_bytes=kept_bytes)
    return _torch(source, inputs, backward=backward, kept_bytes=kept_bytes)


def turned_into(way: str, model: Any, inputs: Inputs, *, backward: bool, kept_bytes: int) -> Execution:
    """Returns the execution of what `way` of WAYS makes of a torch model."""
    args, kwargs = call_of(inputs)
    if way in ("onnx", "onnxruntime"):
        from nbkit.capture.executions.export import exported_onnx

        if backward:
            raise OptionError("backward=True is of torch models; an exported ONNX model has no backward pass.")
        proto, named = exported_onnx(model, args, kwargs)
        optimized = "extended" if way == "onnxruntime" else None
        return _onnx(proto, named, kept_bytes=kept_bytes, optimized=optimized, name=f"{type(model).__name__}.{way}")
    from nbkit.capture.executions.export import compiled, exported

    turned = compiled(model) if way == "compile" else exported(model, args, kwargs)
    name = f"{type(model).__name__}.{way}"
    return _torch(turned, inputs, backward=backward, kept_bytes=kept_bytes, name=name)


def inputs_beside(source: Any, inputs: Inputs) -> Inputs:
    """Returns the inputs of a side on the device of its parameters, where it is a model that has some."""
    if isinstance(source, str | PathLike | Trace | Execution) or not hasattr(source, "parameters"):
        return inputs
    from nbkit.capture.executions.parameters import on_device_of

    return on_device_of(source, inputs)


def call_of(inputs: Inputs) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Returns the arguments of a call by position and by name."""
    if isinstance(inputs, Mapping):
        return (), dict(inputs)
    return tuple(inputs), {}


def _torch(source: Any, inputs: Inputs, *, backward: bool, kept_bytes: int, name: str | None = None) -> Execution:
    from nbkit.capture.executions.torch_execution import torch_execution

    args, kwargs = call_of(inputs)
    return torch_execution(source, args, kwargs, backward=backward, kept_bytes=kept_bytes, name=name)


def _onnx(
    source: Any, inputs: Inputs, *, kept_bytes: int, optimized: str | None = None, name: str | None = None
) -> Execution:
    from nbkit.readers.onnx.run.execution import onnx_execution

    arrays: Any = (
        {key: as_array(value) for key, value in inputs.items()}
        if isinstance(inputs, Mapping)
        else [as_array(value) for value in inputs]
    )
    return onnx_execution(source, arrays, optimized=optimized, kept_bytes=kept_bytes, name=name)
