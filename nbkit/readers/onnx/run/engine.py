"""Computes named values of a Program; what cannot be computed is left out and named."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from nbkit.errors import OptionError
from nbkit.readers.onnx.graph import op_name
from nbkit.readers.onnx.run.program import Array, Program, built, needed, without
from nbkit.readers.onnx.run.session import RefusedError, Session
from nbkit.readers.onnx.types import SPELLED

if TYPE_CHECKING:
    from onnx import NodeProto, ValueInfoProto

# What numpy has; other numbers come and go as float32, through a Cast in the model.
HELD = frozenset(
    "bool float16 float32 float64 int8 int16 int32 int64 uint8 uint16 uint32 uint64 complex64 complex128".split()
)
AS_FLOAT32 = "nbkit_float32_"
# So many nodes that fail are left out one after the other.
MOST_FAILURES = 20
Take = Callable[[str, str, Any], None]


def computed(
    program: Program,
    nodes: Sequence[NodeProto],
    feeds: Mapping[str, Array],
    wanted: Sequence[str],
    take: Take,
    *,
    prepack: bool = True,
) -> list[RefusedError]:
    """Hands (name, dtype, value) of each wanted value that can be computed to `take`; returns what failed, in order.

    Values of no tensors are null. Raises RefusedError if onnxruntime refuses the model without naming a node.
    """
    failures: list[RefusedError] = []
    casts: frozenset[str] = frozenset()
    while True:
        wanted = [name for name in wanted if any(name in node.output for node in nodes)]
        if not wanted:
            return failures
        try:
            session = _session(program, needed(nodes, wanted, feeds), feeds, wanted, casts, prepack)
            types = session.types()
            new_casts = frozenset(name for name in wanted if name in types and _needs_cast(types[name][0]))
            if new_casts:
                casts |= new_casts
                session = _session(program, needed(nodes, wanted, feeds), feeds, wanted, casts, prepack)
                types = {**types, **session.types()}
            _hand_out(session, types, feeds, wanted, casts, take)
            return failures
        except RefusedError as error:
            failed = _node_of(error, nodes)
            if failed is None or len(failures) >= MOST_FAILURES:
                raise
            error.node, error.op = failed.name, op_name(failed)
            failures.append(error)
            nodes = without(nodes, [failed.name])


def _node_of(error: RefusedError, nodes: Sequence[NodeProto]) -> NodeProto | None:
    for node in nodes:
        if error.node == node.name:
            return node
    names = {error.op, (error.op or "").replace(":", ".")} - {None, ""}
    return next((node for node in nodes if op_name(node) in names), None)


def _session(
    program: Program,
    nodes: Sequence[NodeProto],
    feeds: Mapping[str, Array],
    wanted: Sequence[str],
    casts: frozenset[str],
    prepack: bool,
) -> Session:
    from onnx import TensorProto, helper

    declared = {value.name: value for value in program.inputs}
    inputs, before = [], []
    for name, value in feeds.items():
        element_type = element_type_of(declared.get(name), value)
        if dtype_of_element(element_type) in HELD:
            inputs.append(helper.make_tensor_value_info(name, element_type, value.shape))
        else:
            inputs.append(helper.make_tensor_value_info(AS_FLOAT32 + name, TensorProto.FLOAT, value.shape))
            before.append(helper.make_node("Cast", [AS_FLOAT32 + name], [name], to=element_type))
    after = [helper.make_node("Cast", [name], [AS_FLOAT32 + name], to=TensorProto.FLOAT) for name in casts]
    outputs = [AS_FLOAT32 + name if name in casts else name for name in wanted]
    model, borrowed = built(program, [*before, *nodes, *after], inputs, outputs)
    return Session(model, borrowed, program.folder, prepack=prepack)


def element_type_of(declared: ValueInfoProto | None, value: Array) -> int:
    """Returns ONNX's number of an input's dtype: as declared, else that of the value."""
    from onnx import helper

    if declared is not None and declared.type.tensor_type.elem_type:
        return int(declared.type.tensor_type.elem_type)
    return int(helper.np_dtype_to_tensor_dtype(value.dtype))


def dtype_of_element(element_type: int) -> str:
    """Returns the dtype's name in the frames."""
    from nbkit.readers.onnx.types import dtype_name

    return dtype_name(element_type) or "none"


def dtype_of(kind: str) -> str:
    """Returns `float32` of `tensor(float)`; other types as onnxruntime writes them."""
    if not kind.startswith("tensor("):
        return kind
    name = kind[len("tensor(") : -1]
    return SPELLED.get(name, name)


def _needs_cast(kind: str) -> bool:
    return kind.startswith("tensor(") and dtype_of(kind) not in HELD and kind != "tensor(string)"


def _hand_out(
    session: Session,
    types: Mapping[str, tuple[str, Any]],
    feeds: Mapping[str, Array],
    wanted: Sequence[str],
    casts: frozenset[str],
    take: Take,
) -> None:
    tensors = [name for name in wanted if types[name][0].startswith("tensor(")]
    fed = {item: feeds[item.removeprefix(AS_FLOAT32)] for item in session.inputs()}
    values = session.run([AS_FLOAT32 + name if name in casts else name for name in tensors], fed)
    values.reverse()
    for name in wanted:
        kind = types[name][0]
        value = values.pop() if kind.startswith("tensor(") else None  # popped: nothing else keeps it alive
        take(name, dtype_of(kind), None if value is None else np.asarray(value))


def sentence(error: RefusedError) -> str:
    """Returns what failed as a sentence."""
    if error.node is None:
        return f"onnxruntime refuses the model: {error.reason}."
    return f"Node {error.node!r} ({error.op}) cannot be run: {error.reason}."


def option_error(error: RefusedError) -> OptionError:
    """Returns the error for a model of which nothing runs."""
    return OptionError(sentence(error))
