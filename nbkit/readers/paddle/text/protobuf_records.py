"""Makes variables and operations of protobuf text from their messages."""

from collections.abc import Iterator
from typing import Any

from nbkit.readers.paddle.dtypes import dtype_name
from nbkit.readers.paddle.records import BlockReference, Operation, Program, Slots, Variable, VariableReference
from nbkit.readers.text_proto import Message, message, messages, plain, text, texts

LISTS = frozenset({"INTS", "FLOATS", "STRINGS", "BOOLEANS", "BLOCKS", "LONGS", "FLOAT64S", "SCALARS", "VARS"})
DEFAULTS = {"STRING": "", "BOOLEAN": False, "INT": 0, "LONG": 0, "FLOAT": 0.0, "FLOAT64": 0.0}
LONGEST_SIZE = 1 << 60


def variable(of: Message) -> Variable | None:
    """Returns the variable of a `vars` message; None where its name is not there."""
    name = text(of, "name")
    if not name:
        return None
    kind = message(of, "type")
    tensor = next(_tensors(kind), {})
    sizes = [size for size in _plain(tensor, "dims") if isinstance(size, int) and abs(size) < LONGEST_SIZE]
    dtype = text(tensor, "data_type")
    facts = {field: _plain(of, field)[0] for field in ("stop_gradient", "need_check_feed") if field in of}
    return Variable(
        name=name,
        type=str(text(kind, "type")),
        shape=tuple(sizes) if tensor else None,
        dtype=dtype_name(dtype) if dtype else None,
        persistable=text(of, "persistable") == "true",
        is_parameter=_plain(of, "is_parameter")[0] if "is_parameter" in of else None,
        attributes=facts | _attributes(of),
    )


def operation(of: Message) -> Operation | None:
    """Returns the operation of an `ops` message; None where its type is not there."""
    kind = text(of, "type")
    if not kind:
        return None
    target = {"is_target": _plain(of, "is_target")[0]} if "is_target" in of else {}
    return Operation(kind, _slots(of, "inputs"), _slots(of, "outputs"), _attributes(of) | target)


def find_parameters(program: Program) -> None:
    """Tells parameters from other state where no variable says it: what optimizers update, else what nothing writes.

    A program without optimizer, as one that was saved for inference, writes to no parameter.
    """
    variables = [variable for block in program.blocks.values() for variable in block.variables.values()]
    if any(variable.is_parameter for variable in variables):
        return
    operations = [op for block in program.blocks.values() for op in block.operations]
    updated = {name for op in operations for slot, names in op.inputs if slot == "Param" for name in names}
    written = {name for op in operations for _, names in op.outputs for name in names}
    for state in variables:
        if state.persistable and state.dtype is not None:
            state.is_parameter = state.name in updated if updated else state.name not in written


def _plain(of: Message, field: str) -> list[Any]:
    return [plain(value) for value in of.get(field, ())]


def _tensors(kind: Message) -> Iterator[Message]:
    """Yields the messages with an element type in a variable's type: `lod_tensor { tensor {` or `selected_rows {`."""
    for values in kind.values():
        for inner in values:
            if isinstance(inner, dict):
                yield from [inner] if "data_type" in inner else _tensors(inner)


def _slots(of: Message, field: str) -> Slots:
    return [(str(text(slot, "parameter")), texts(slot, "arguments")) for slot in messages(of, field)]


def _attributes(of: Message) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for held in messages(of, "attrs"):
        if (name := text(held, "name")) is not None:
            values = [value for field in held if field not in ("name", "type") for value in _plain(held, field)]
            result[name] = _value(str(text(held, "type")), values)
    return result


def _value(kind: str, values: list[Any]) -> Any:
    if kind in ("BLOCK", "BLOCKS"):
        return BlockReference(tuple(value for value in values if isinstance(value, int)), kind == "BLOCKS")
    if kind in ("VAR", "VARS"):
        return VariableReference(tuple(str(value) for value in values), kind == "VARS")
    if kind in LISTS:
        return values
    return values[0] if values else DEFAULTS.get(kind)
