"""Runs what opalign is given as a side: a model of torch or ONNX, a program, a recorded trace."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nbkit.errors import NbkitError, OptionError
from nbkit.trace.executions.arrays import as_array
from nbkit.trace.executions.execution import Execution
from nbkit.trace.trace import Trace
from nbkit.verbs.alignment.accepted import ONNX_WAYS, Inputs, checked_recording, is_onnx
from nbkit.verbs.load import load

if TYPE_CHECKING:
    from nbkit.readers.onnx.run.matching import Matched

# How what a gradient is of stands before it among the outputs of an execution.
GRADIENT = "grad of "


def execution_of(source: Any, inputs: Inputs, *, backward: bool, kept_bytes: int, side: str = "left") -> Execution:
    """Returns the execution of one side. Raises OptionError or TraceError for what cannot be run."""
    if isinstance(source, Execution):
        return source
    if isinstance(source, str | PathLike):
        if _runs_as_onnx(source):
            return _onnx(source, inputs, kept_bytes=kept_bytes)
        source = load(source)
    if isinstance(source, Trace):
        from nbkit.analysis.align.traces.from_trace import trace_execution

        return trace_execution(checked_recording(source, side))
    if is_onnx(source):
        return _onnx(source, inputs, kept_bytes=kept_bytes)
    return _torch(source, inputs, backward=backward, kept_bytes=kept_bytes)


def turned_into(
    way: str,
    model: Any,
    inputs: Inputs,
    *,
    backward: bool,
    kept_bytes: int,
    opset: int | None = None,
    dump: Path | None = None,
) -> Execution:
    """Returns the execution of what `way` of WAYS makes of a torch model; graphs and inputs are written to `dump`."""
    args, kwargs = call_of(inputs)
    name = f"{type(model).__name__}.{way}"
    if way in ONNX_WAYS:
        from nbkit.capture.executions.export import exported_onnx

        proto, named = exported_onnx(model, args, kwargs, opset=opset, backward=backward)
        optimized = "extended" if way == "onnxruntime" else None
        run = _onnx(proto, named, kept_bytes=kept_bytes, optimized=optimized, name=name, dump=dump)
        return _with_gradients(run) if backward else run
    from nbkit.capture.executions.export import compiled, exported
    from nbkit.capture.executions.programs import write_program

    turned = compiled(model) if way == "compile" else exported(model, args, kwargs)
    if way == "export" and dump is not None:
        write_program(dump, turned)
    return _torch(turned, inputs, backward=backward, kept_bytes=kept_bytes, name=name, dump=dump)


def _with_gradients(run: Execution) -> Execution:
    """Returns an execution that knows of which parameter or input each gradient among its outputs is."""
    known = {f"{GRADIENT}{one.name}": one.result_id for one in run.results if one.kind != "op"}
    return replace(run, gradients={known[name]: number for name, number in run.outputs.items() if name in known})


@dataclass(frozen=True)
class Given:
    """Holds the inputs of both sides, and which left one each input of a right ONNX model got, if it was found out."""

    left: Inputs
    right: Inputs
    matched: "Matched | None" = None

    def inputs_in(self, order: "Matched") -> Inputs:
        """Returns the inputs of the right side in another order."""
        assert isinstance(self.right, Mapping) and self.matched is not None
        values = {given: self.right[name] for name, given in self.matched.pairs.items()}
        return {name: values[given] for name, given in order.pairs.items()}


def given_to(left: Any, right: Any, inputs: Inputs) -> Given:
    """Returns what both sides get: by name, and by dtype and shape what a right ONNX model calls otherwise.

    Where the inputs are those of two ONNX models, under all their names, each gets its own. Raises OptionError.
    """
    if not _runs_as_onnx(right):
        return Given(inputs, inputs_beside(right, inputs))
    from nbkit.readers.onnx.run.matching import declared_inputs, matched

    (declared, known), own = declared_inputs(right), _own_inputs(left)
    if isinstance(inputs, Mapping) and own and {*own[0], *declared} <= inputs.keys() <= own[1] | known:
        first, second = ({name: inputs[name] for name in inputs if name in names} for names in (own[1], known))
        return Given(first, second)
    named = _named(left, inputs, own and own[0])
    if own is not None and not own[0].keys() <= named.keys() <= own[1]:
        return Given(inputs, inputs)  # the left side refuses them
    if isinstance(inputs, Mapping) and known.issuperset(named):
        return Given(inputs, {name: one for name, one in inputs.items() if name in known or own is not None})
    try:
        found = matched(declared, {name: as_array(value) for name, value in named.items()})
    except OptionError:
        if isinstance(inputs, Mapping):
            raise
        return Given(inputs, inputs)  # by place, if that fits
    if not isinstance(inputs, Mapping) and [*found.pairs.values()] == [*named] and not found.equal:
        return Given(inputs, inputs)
    return Given(inputs, {name: named[given] for name, given in found.pairs.items()}, found)


def _own_inputs(left: Any) -> "tuple[Mapping[str, Any], frozenset[str]] | None":
    """Returns what an ONNX model declares; null of another side, or of a file whose refusal is the left side's own."""
    from nbkit.readers.onnx.run.matching import declared_inputs

    try:
        return declared_inputs(left) if _runs_as_onnx(left) else None
    except NbkitError:
        return None


def _named(left: Any, inputs: Inputs, own: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """Returns the inputs by their names on the left side, in its order; `own` are those of an ONNX model."""
    if own is not None and isinstance(inputs, Mapping):
        return {**{name: inputs[name] for name in own if name in inputs}, **inputs}
    if own is not None:
        return dict(zip(own, inputs, strict=False))
    if isinstance(left, str | PathLike | Trace | Execution):
        return inputs if isinstance(inputs, Mapping) else {}
    from nbkit.capture.executions.names import named_inputs

    return dict(named_inputs(left, *call_of(inputs)))


def _runs_as_onnx(source: Any) -> bool:
    is_file = isinstance(source, str | PathLike) and Path(source).suffix.lower() == ".onnx"
    return is_file or is_onnx(source)


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


def _torch(
    source: Any,
    inputs: Inputs,
    *,
    backward: bool,
    kept_bytes: int,
    name: str | None = None,
    dump: Path | None = None,
) -> Execution:
    from nbkit.capture.executions.torch_execution import torch_execution

    args, kwargs = call_of(inputs)
    return torch_execution(source, args, kwargs, backward=backward, kept_bytes=kept_bytes, name=name, dump=dump)


def _onnx(
    source: Any,
    inputs: Inputs,
    *,
    kept_bytes: int,
    optimized: str | None = None,
    name: str | None = None,
    dump: Path | None = None,
) -> Execution:
    from nbkit.readers.onnx.run.execution import onnx_execution

    arrays: Any = (
        {key: as_array(value) for key, value in inputs.items()}
        if isinstance(inputs, Mapping)
        else [as_array(value) for value in inputs]
    )
    return onnx_execution(source, arrays, optimized=optimized, kept_bytes=kept_bytes, name=name, dump=dump)
