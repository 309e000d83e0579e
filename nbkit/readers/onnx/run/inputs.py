"""Pairs what the user gives with the inputs of an ONNX model: by name, or by place where all of it fits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from nbkit import units
from nbkit.errors import OptionError
from nbkit.readers.onnx.run.engine import HELD
from nbkit.readers.onnx.run.parse import model_of, program_of
from nbkit.readers.onnx.run.program import Program
from nbkit.readers.onnx.types import dtype_name, type_columns
from nbkit.trace.executions.execution import Array

if TYPE_CHECKING:
    from onnx import ValueInfoProto

# Of so many names and inputs, a sentence lists the first.
LISTED = 12


def paired_inputs(model: object, inputs: Mapping[str, object] | Sequence[object]) -> dict[str, Array]:
    """Returns what is given by the names of the model's inputs, in their order.

    A mapping is paired by name only. A sequence is paired by place, if there are as many as inputs and each fits in
    dtype and shape; equal symbolic sizes must be equal. Python numbers and lists get the declared dtype; nothing else
    is cast, but float32 stands for bfloat16 and float8. Initializers that are inputs as well may be given, too, by
    name. Raises OptionError, with both lists.
    """
    proto, folder, _ = model_of(model)
    return paired(program_of(proto, folder), inputs)


def paired(program: Program, inputs: Mapping[str, object] | Sequence[object]) -> dict[str, Array]:
    """Returns the same for a program."""
    declared = {value.name: value for value in program.inputs}
    if isinstance(inputs, Mapping):
        by_name = _by_name(program, declared, inputs)
    elif isinstance(inputs, (str, bytes, np.ndarray)) or not isinstance(inputs, Sequence):
        raise OptionError(
            f"The inputs are of type {type(inputs).__name__}: give a dict by name, or a list with a value for each."
        )
    elif len(inputs) != len(declared):
        raise OptionError(
            f"{units.counted(len(inputs), 'value')} given for {units.counted(len(declared), 'input')}: "
            f"{listed(declared)}; give them as a dict by name."
        )
    else:
        by_name = dict(zip(declared, inputs, strict=True))
    known = {**declared, **program.overridable}
    found = {name: _value(known[name], given, by_name, declared) for name, given in by_name.items()}
    _check_symbols(known, found)
    return found


def _by_name(
    program: Program, declared: Mapping[str, ValueInfoProto], inputs: Mapping[str, object]
) -> dict[str, object]:
    unknown = [name for name in inputs if name not in declared and name not in program.overridable]
    absent = [name for name in declared if name not in inputs]
    if unknown or absent:
        raise OptionError(
            f"The inputs do not pair by name: the model has {listed(declared)}; given are "
            f"{_some([repr(name) for name in inputs])}. Give each under its name."
        )
    return {name: inputs[name] for name in (*declared, *program.overridable) if name in inputs}


def _value(
    declared: ValueInfoProto, given: object, inputs: Mapping[str, object], all_declared: Mapping[str, ValueInfoProto]
) -> Array:
    """Returns one value as an array of the declared dtype. Raises OptionError if it does not fit."""
    name, kind = declared.name, declared.type
    if kind.WhichOneof("value") != "tensor_type":
        raise OptionError(
            f"Input {name!r} of the model is no tensor, but {type_text(declared)}: such models cannot be run."
        )
    fitting = as_declared(declared, given)
    if fitting is None:
        raise OptionError(
            f"Input {name!r} is {type_text(declared)} in the model, and {value_text(given)} is given: "
            f"the model has {listed(all_declared)}; given are {given_text(inputs)}."
        )
    return fitting


def as_declared(declared: ValueInfoProto, given: object) -> Array | None:
    """Returns a value as an array of the declared dtype; null where its dtype or shape does not fit."""
    dtype = dtype_name(declared.type.tensor_type.elem_type) or "float32"
    held = dtype if dtype in HELD else "float32"
    is_python = isinstance(given, (bool, int, float, list, tuple)) and not isinstance(given, np.generic)
    value = np.asarray(given)
    if dtype not in HELD and str(value.dtype) == dtype:
        value = value.astype(np.float32)
    if is_python and held != "string" and _is_safe(value, held):
        value = value.astype(held)
    fits = value.dtype.kind in "OUS" if held == "string" else str(value.dtype) == held
    if not fits or not _fits(declared, value.shape):
        return None
    return value.astype(object) if held == "string" else value


def _is_safe(value: Array, dtype: str) -> bool:
    """Returns whether Python's numbers stay what they are in a dtype, but for rounding."""
    if value.size == 0 or value.dtype.kind == "f":
        return value.size == 0 or dtype.startswith("float")
    return (value.dtype.kind in "biu" and bool((value.astype(dtype) == value).all())) or dtype.startswith("float")


def _fits(declared: ValueInfoProto, shape: tuple[int, ...]) -> bool:
    sizes = type_columns(declared.type)[0].get("shape")
    if sizes is None:
        return True
    return len(sizes) == len(shape) and all(size in (None, own) for size, own in zip(sizes, shape, strict=True))


def _check_symbols(declared: Mapping[str, ValueInfoProto], found: Mapping[str, Array]) -> None:
    """Raises OptionError if sizes of one symbol differ."""
    sizes: dict[str, tuple[str, int]] = {}
    for name, value in found.items():
        for dim, size in zip(declared[name].type.tensor_type.shape.dim, value.shape, strict=False):
            if not dim.dim_param:
                continue
            other, known = sizes.setdefault(dim.dim_param, (name, size))
            if known != size:
                raise OptionError(
                    f"Size {dim.dim_param!r} is {known} in {other!r} and {size} in {name!r}: the model wants it equal "
                    f"in all of {listed(declared)}."
                )


def listed(declared: Mapping[str, ValueInfoProto]) -> str:
    """Lists what a model declares, by name, with dtypes and shapes."""
    return _some([f"{name!r} {type_text(value)}" for name, value in declared.items()])


def _some(items: Sequence[str]) -> str:
    return (", ".join(items[:LISTED]) or "none") + units.and_more(len(items) - LISTED)


def type_text(value: ValueInfoProto) -> str:
    """Returns dtype and shape of what a model declares: `float32 (batch, 4)`."""
    kind = value.type.WhichOneof("value")
    if kind != "tensor_type":
        return f"a {(kind or 'value').removesuffix('_type').replace('_', ' ')}"
    return f"{dtype_name(value.type.tensor_type.elem_type)} {_shape(value)}"


def _shape(value: ValueInfoProto) -> str:
    tensor = value.type.tensor_type
    if not tensor.HasField("shape"):
        return "of any shape"
    return _written(
        [dim.dim_param or (dim.dim_value if dim.HasField("dim_value") else "?") for dim in tensor.shape.dim]
    )


def value_text(value: object) -> str:
    """Returns dtype and shape of what is given: `float32 (2, 4)`."""
    array = np.asarray(value)
    return f"{array.dtype} {_written(array.shape)}"


def given_text(inputs: Mapping[str, object]) -> str:
    """Lists what is given, by name, with dtypes and shapes."""
    return _some([f"{name!r} {value_text(one)}" for name, one in inputs.items()])


def _written(shape: Sequence[object]) -> str:
    return f"({', '.join(map(str, shape))})"
