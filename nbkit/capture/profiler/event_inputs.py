"""Tells what Kineto recorded of the inputs of ops beside their shapes: dtypes, strides, and what is no tensor."""

import json
from collections.abc import Sequence
from functools import cache
from typing import Any

import torch
from torch._ops import OpOverload

from nbkit.capture.raw.arguments import A_TENSOR, describe
from nbkit.compat import torch_versions
from nbkit.timeline.events import ABSENT

# How Kineto tells an argument that is no tensor; texts, devices and None all are "".
NO_TENSOR = ("", "Scalar", "ScalarList")
# Codes of c10::ScalarType, and what C++ calls each.
CODED_DTYPES = {
    0: ("unsigned char", "uint8"), 1: ("signed char", "int8"), 2: ("short int", "int16"), 3: ("int", "int32"),
    4: ("long int", "int64"), 5: ("c10::Half", "float16"), 6: ("float", "float32"), 7: ("double", "float64"),
    8: ("c10::complex<c10::Half>", "complex32"), 9: ("c10::complex<float>", "complex64"),
    10: ("c10::complex<double>", "complex128"), 11: ("bool", "bool"), 15: ("c10::BFloat16", "bfloat16"),
    23: ("c10::Float8_e5m2", "float8_e5m2"), 24: ("c10::Float8_e4m3fn", "float8_e4m3fn"),
    25: ("c10::Float8_e5m2fnuz", "float8_e5m2fnuz"), 26: ("c10::Float8_e4m3fnuz", "float8_e4m3fnuz"),
    27: ("short unsigned int", "uint16"), 28: ("unsigned int", "uint32"), 29: ("long unsigned int", "uint64"),
    44: ("c10::Float8_e8m0fnu", "float8_e8m0fnu"),
}  # fmt: skip
DTYPES = dict(CODED_DTYPES.values())
# What Kineto tells as a number, by the type in the schema.
CODED = {
    "ScalarType": {code: name for code, (_, name) in CODED_DTYPES.items()},
    "MemoryFormat": dict(enumerate(("contiguous_format", "preserve_format", "channels_last", "channels_last_3d"))),
    "Layout": dict(enumerate((
        "strided", "sparse_coo", "sparse_csr", "_mkldnn", "sparse_csc", "sparse_bsr", "sparse_bsc", "jagged",
    ))),
}  # fmt: skip
Texts = list[str | None]


def input_columns(raw: Sequence[Any]) -> dict[str, Texts]:
    """Returns columns of events: their `input_dtypes`, `input_strides` and `arguments`, each as JSON or null."""
    text = cache(json.dumps)
    kinds = [own_inputs(event, event.dtypes()) for event in raw]
    dtypes = [tuple(map(DTYPES.get, names)) for names in kinds]
    strides = [own_inputs(event, torch_versions.input_strides(event)) for event in raw]
    return {
        "input_dtypes": [text(each) if any(each) else None for each in dtypes],
        # Kineto's lists read the same in Python and in JSON.
        "input_strides": [
            str(each) if any(names) and each else None for each, names in zip(strides, dtypes, strict=True)
        ],
        "arguments": _arguments(raw, kinds),
    }


def own_inputs(event: Any, values: list[Any]) -> list[Any]:
    """Returns what Kineto recorded of the inputs of an event, each once.

    A call that a transform of torch.func hands on to autograd's kernel has all of them twice.
    """
    half = len(values) // 2
    if not half or len(values) % 2 or half != _argument_count(event.name(), torch_versions.overload_name(event)):
        return values
    return values[:half]


@cache
def _argument_count(name: str, overload: str | None) -> int:
    op = _op(name, overload)
    return ABSENT if op is None else len(op._schema.arguments)


def _arguments(raw: Sequence[Any], dtypes: Sequence[list[str]]) -> Texts:
    texts: Texts = []
    known: dict[tuple[str, str | None, str, str], str | None] = {}
    for event, kinds in zip(raw, dtypes, strict=True):
        name, overload, values = event.name(), torch_versions.overload_name(event), event.concrete_inputs()
        values = own_inputs(event, values)
        key = name, overload, repr(kinds), repr(values)
        if key not in known:
            known[key] = _described(name, overload, kinds, values)
        texts.append(known[key])
    return texts


def _described(name: str, overload: str | None, kinds: list[str], values: list[Any]) -> str | None:
    """Returns the arguments of a call by their names in the op's schema; null where Kineto does not tell them."""
    op = _op(name, overload)
    if op is None or not len(op._schema.arguments) == len(kinds) == len(values):
        return None
    given = [
        value if kind in NO_TENSOR else A_TENSOR
        for value, kind, argument in zip(values, kinds, op._schema.arguments, strict=True)
        if not argument.is_out
    ]
    types = [str(argument.real_type) for argument in op._schema.arguments if not argument.is_out]
    return describe(op, [_named(value, type_) for value, type_ in zip(given, types, strict=True)]).text


def _op(name: str, overload: str | None) -> OpOverload | None:
    """Returns the op of an event; None of a named block, or where torch does not tell the overload."""
    namespace, _, base = name.partition("::")
    try:
        packet = getattr(getattr(torch.ops, namespace), base) if base and overload is not None else None
        op = getattr(packet, overload or "default", None)
    except (AttributeError, RuntimeError):
        return None
    return op if isinstance(op, OpOverload) else None


def _named(value: Any, type_: str) -> Any:
    """Returns dtypes, layouts and memory formats by their names; null of one that we do not know."""
    names = next((names for coded, names in CODED.items() if coded in type_), None)
    return names.get(value) if names is not None and isinstance(value, int) else value
