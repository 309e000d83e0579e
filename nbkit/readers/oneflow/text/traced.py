"""Reads ops of the traced graph: what the text of an operator's configuration says."""

from dataclasses import dataclass, field
from typing import Any

from nbkit.readers.oneflow.dtypes import dtype_name, sbp_name, sbp_names, shape_of
from nbkit.readers.oneflow.names import split_name
from nbkit.readers.oneflow.text.operator_line import Description
from nbkit.readers.text_proto import Message, message, messages, plain, plain_field, text, texts

KINDS = {"variable_conf": "parameter", "input_conf": "input", "output_conf": "output"}
# Fields that become columns, or are written in another form.
HANDLED = {"name", "device_tag", "loc", "user_conf", "blob_conf", "shape", "data_type", "nd_sbp", "out", "in"}
# Results of the configurations that name neither slots nor an order.
RESULTS = ("out", "y")


@dataclass(slots=True)
class TracedOp:
    """Holds an op as it was added to a graph: inputs are (slot, tensor) and outputs tensors, both in call order.

    `has_text` is False where its name is all that was printed; `is_added` where no line says that the graph took it;
    `is_damaged` is True where some of its text was unreadable.
    """

    name: str
    line: int
    kind: str = "op"
    op: str | None = None
    device: str | None = None
    dtype: str | None = None
    shape: tuple[int, ...] | None = None
    sbp: list[str] | None = None
    loc: str | None = None
    inputs: list[tuple[str, str]] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    attributes: dict[str, Any] = field(default_factory=dict)
    is_added: bool = False
    is_damaged: bool = False
    has_text: bool = True


def traced_op(fields: Message, line: int) -> TracedOp | None:
    """Returns the op of an operator configuration; None if it has no name."""
    name = text(fields, "name")
    if not name:
        return None
    made = TracedOp(name, line, device=text(fields, "device_tag"), loc=text(fields, "loc"))
    made.attributes = _rest(fields)
    if user := message(fields, "user_conf"):
        _fill_user(made, user)
        return made
    configuration = next((key for key in fields if key.endswith("_conf")), None)
    if configuration is None:
        parts = split_name(name)
        made.op = parts[1] if parts else None
    else:
        made.attributes.pop(configuration, None)
        _fill_system(made, configuration.removesuffix("_conf"), message(fields, configuration))
    return made


def _fill_user(made: TracedOp, user: Message) -> None:
    made.op = text(user, "op_type_name")
    for slot, tensors in _in_order(user, "input"):
        made.inputs += [(slot, tensor) for tensor in tensors]
    made.outputs = [tensor for _, tensors in _in_order(user, "output") for tensor in tensors]
    attributes = {text(entry, "key") or "": plain(message(entry, "value")) for entry in messages(user, "attr")}
    if attributes:
        made.attributes["attr"] = {name: _listed(value) for name, value in attributes.items()}


def _in_order(user: Message, key: str) -> list[tuple[str, list[str]]]:
    """Returns slots and their tensors in call order: the printed map is sorted by name."""
    slots = {text(entry, "key") or "": texts(message(entry, "value"), "s") for entry in messages(user, key)}
    order = dict.fromkeys([*texts(user, f"{key}_order"), *slots])
    return [(slot, slots[slot]) for slot in order if slot in slots]


def _listed(attribute: dict[str, Any]) -> dict[str, Any]:
    """Returns an attribute {kind: value}; lists and shapes as lists, however many values they have."""
    return {kind: _values(value) if _is_list(kind) else value for kind, value in attribute.items()}


def _is_list(kind: str) -> bool:
    return kind.startswith("at_list_") or kind in ("at_shape", "at_stride")


def _values(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    if not value:
        return []
    inner = next(iter(value.values()))
    return inner if isinstance(inner, list) else [inner]


def _fill_system(made: TracedOp, op: str, conf: Message) -> None:
    """Fills a variable, an input, an output, or an op that the framework itself knows."""
    made.kind = KINDS.get(f"{op}_conf", "op")
    if made.kind == "op":
        made.op = op
    elif made.kind == "parameter" and "FreeEagerTensor" in made.name:
        made.kind = "constant"
    blob = message(conf, "blob_conf") or conf
    made.shape, made.dtype, made.sbp = shape_of(blob), dtype_name(text(blob, "data_type")), sbp_names(blob)
    for key in conf:
        for value in texts(conf, key):
            if "/" in value and key not in RESULTS:
                made.inputs.append((key, value))
            elif key in RESULTS and value:
                made.outputs.append(value if "/" in value else f"{made.name}/{value}")
    made.attributes |= _rest({key: values for key, values in conf.items() if not _is_tensor(values)}) | _rest(
        message(conf, "blob_conf")
    )


def _is_tensor(values: list[Any]) -> bool:
    return all(isinstance(value, str) and "/" in value for value in values)


def _rest(fields: Message) -> dict[str, Any]:
    return {key: plain_field(values) for key, values in fields.items() if key not in HANDLED}


def described(fields: Message) -> dict[str, Description]:
    """Returns the tensors of an op's attributes by name (op/blob)."""
    op = text(message(fields, "op_conf"), "name") or ""
    names = {
        key: f"{text(value, 'op_name')}/{text(value, 'blob_name')}"
        for key, value in _pairs(message(fields, "arg_signature"), "bn_in_op2lbi")
    }
    sbp = {
        key: tuple(sbp_name(parallel) for parallel in messages(value, "sbp_parallel"))
        for key, value in _pairs(message(fields, "nd_sbp_signature"), "bn_in_op2nd_sbp")
    } or {key: (sbp_name(value),) for key, value in _pairs(message(fields, "sbp_signature"), "bn_in_op2sbp_parallel")}
    blobs = _pairs(message(fields, "logical_blob_desc_signature"), "bn_in_op2blob_desc")
    return {
        names.get(key, f"{op}/{key}"): Description(
            sbp.get(key, ()), shape_of(value), dtype_name(text(value, "data_type"))
        )
        for key, value in blobs
    }


def _pairs(parent: Message, field: str) -> list[tuple[str, Message]]:
    """Returns a printed map: its keys and the messages they stand for."""
    return [(text(entry, "key") or "", message(entry, "value")) for entry in messages(parent, field)]
