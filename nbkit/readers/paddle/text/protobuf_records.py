"""Makes variables and operations of protobuf text from their messages."""

from collections.abc import Iterable, Iterator
from typing import Any

from nbkit.readers.paddle.dtypes import dtype_name
from nbkit.readers.paddle.records import BlockReference, Operation, Program, Slots, Variable, VariableReference
from nbkit.readers.paddle.text.strings import STRING, octal_text
from nbkit.readers.paddle.text.values import WORDS, number

# A message: each field with all values that it was given, in order.
Message = dict[str, list[Any]]
LISTS = frozenset({"INTS", "FLOATS", "STRINGS", "BOOLEANS", "BLOCKS", "LONGS", "FLOAT64S", "SCALARS", "VARS"})
DEFAULTS = {"STRING": "", "BOOLEAN": False, "INT": 0, "LONG": 0, "FLOAT": 0.0, "FLOAT64": 0.0}
LONGEST_SIZE = 1 << 60


def scalar(text: str) -> Any:
    """Returns the value of a field: a string, a number, a boolean, or the name of an enumeration's value."""
    if STRING.fullmatch(text):
        return octal_text(text)
    return WORDS[text] if text in WORDS else number(text)


def variable(message: Message) -> Variable | None:
    """Returns the variable of a `vars` message; None where its name is not there."""
    name = _first(message, "name")
    if not isinstance(name, str):
        return None
    kind = _message(message, "type")
    tensor = next(_tensors(kind), {})
    sizes = [size for size in tensor.get("dims", []) if isinstance(size, int) and abs(size) < LONGEST_SIZE]
    dtype = _first(tensor, "data_type")
    result = Variable(
        name=name,
        type=str(_first(kind, "type")),
        shape=tuple(sizes) if tensor else None,
        dtype=dtype_name(dtype) if isinstance(dtype, str) else None,
        persistable=_first(message, "persistable") is True,
        is_parameter=_first(message, "is_parameter") if "is_parameter" in message else None,
    )
    fields = ("stop_gradient", "need_check_feed")
    result.attributes = {field: _first(message, field) for field in fields if field in message}
    result.attributes.update(_attributes(message.get("attrs", [])))
    return result


def operation(message: Message) -> Operation | None:
    """Returns the operation of an `ops` message; None where its type is not there."""
    kind = _first(message, "type")
    if not isinstance(kind, str):
        return None
    result = Operation(kind, _slots(message.get("inputs", [])), _slots(message.get("outputs", [])))
    result.attributes = dict(_attributes(message.get("attrs", [])))
    if "is_target" in message:
        result.attributes["is_target"] = _first(message, "is_target")
    return result


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


def _first(message: Message, field: str) -> Any:
    return next(iter(message.get(field, [])), None)


def _message(message: Message, field: str) -> Message:
    value = _first(message, field)
    return value if isinstance(value, dict) else {}


def _tensors(kind: Message) -> Iterator[Message]:
    """Yields the messages with an element type in a variable's type: `lod_tensor { tensor {` or `selected_rows {`."""
    for values in kind.values():
        for inner in values:
            if isinstance(inner, dict):
                yield from [inner] if "data_type" in inner else _tensors(inner)


def _slots(messages: Iterable[Any]) -> Slots:
    slots: Slots = []
    for message in messages:
        if isinstance(message, dict):
            names = [str(name) for name in message.get("arguments", [])]
            slots.append((str(_first(message, "parameter")), names))
    return slots


def _attributes(messages: Iterable[Any]) -> Iterator[tuple[str, Any]]:
    for message in messages:
        if isinstance(message, dict) and "name" in message:
            kind = str(_first(message, "type"))
            values = [value for field, held in message.items() if field not in ("name", "type") for value in held]
            yield str(_first(message, "name")), _value(kind, values)


def _value(kind: str, values: list[Any]) -> Any:
    if kind in ("BLOCK", "BLOCKS"):
        return BlockReference(tuple(value for value in values if isinstance(value, int)), kind == "BLOCKS")
    if kind in ("VAR", "VARS"):
        return VariableReference(tuple(str(value) for value in values), kind == "VARS")
    if kind in LISTS:
        return values
    return values[0] if values else DEFAULTS.get(kind)
