"""Reads operations of PIR text: `(%2) = "pd_op.add" (%0, %1) {name:value} : (TYPE, TYPE) -> TYPE`."""

import re
from dataclasses import dataclass
from typing import Any

from nbkit.readers.paddle.records import Operation, Slots, Variable
from nbkit.readers.paddle.text import pir_text

# The kernel dialect, which is what Paddle runs and logs, names kernels: "matmul(phi_kernel)".
START = re.compile(r'\(((?:\s*+%[^()=]*+)?)\) = ("?)([A-Za-z_]\w*+(?:(?:\.\w++)*+\(\w+_kernel\)|(?:\.\w++)++))("?)')
NUMBER = re.compile(r" ?\[id:(\d{1,18})\]")
ARROW = "->"
# What these operations stand for in a graph, and the attribute that names it.
KINDS = {"builtin.parameter": "parameter", "pd_op.data": "input", "pd_op.feed": "input", "builtin.constant": "constant"}
NAMES = ("parameter_name", "name", "output_name", "col")
OPTIMIZER_STATE = re.compile(r"(?:_moment\d?|_pow_acc|_master|_velocity|^learning_rate|^loss_scaling)_\d{1,9}$")
STATE = ("persistable", "is_persistable", "is_persisable")


@dataclass
class Line:
    """Holds an operation, its results as variables, what stands before it, and whether a region begins at its end."""

    operation: Operation
    results: list[Variable]
    before: str
    has_region: bool


def parse(text: str) -> Line | None:
    """Returns the operation of a line; None if there is none."""
    match = START.search(text)
    if match is None:
        return None
    operation = Operation(match[3])
    names = [name.strip() for name in match[1].split(",") if name.strip()]
    operation.outputs = [("results", names)] if names else []
    position = match.end()
    if numbered := NUMBER.match(text, position):
        operation.attributes["id"] = int(numbered[1])
        position = numbered.end()
    rest = text[position:].strip()
    has_region = rest.endswith("{")
    types = _fill(operation, rest.removesuffix("{").rstrip() if has_region else rest)
    if operation.type.endswith(")"):
        op = operation.attributes.get("op_name")
        operation.type = op if isinstance(op, str) else f"pd_op.{operation.type.partition('(')[0]}"
    _name(operation)
    results = _results(operation, names, types)
    return Line(operation, results, text[: match.start()], has_region)


def _fill(operation: Operation, rest: str) -> list[str] | None:
    """Takes operands and attributes from what follows the name; returns the results' types, None where not printed."""
    if not rest.startswith("("):
        operation.damage = "its operands cannot be read"
        return None
    operands, end = pir_text.split(rest, 1)
    operation.inputs = _operands(operands)
    rest = "" if end is None else rest[end + 1 :].lstrip()
    if rest.startswith("{"):
        pieces, end = pir_text.split(rest, 1)
        operation.attributes |= pir_text.attributes(pieces)
        rest = "" if end is None else rest[end + 1 :].lstrip()
    if end is None:
        operation.damage = "its record is cut"
        return None
    return _types(operation, rest)


def _types(operation: Operation, rest: str) -> list[str] | None:
    if rest.startswith(":"):
        end = pir_text.split(rest, rest.find("(") + 1)[1] if "(" in rest else None
        if end is None:
            operation.damage = "its record is cut"
            return None
        rest = rest[end + 1 :].lstrip()
    if rest.startswith(ARROW):
        if START.search(rest):
            operation.damage = "its line has another operation, too"
        types, end = pir_text.split(rest, len(ARROW))
        if end is not None:
            operation.damage = operation.damage or "its types cannot be read"
        return types
    if rest or operation.bare_type != "while":
        operation.damage = "its types cannot be read" if rest else "its record is cut"
    return None


def _operands(pieces: list[str]) -> Slots:
    """Returns the operands; those of `while` have the slots cond and inputs."""
    slots: Slots = []
    for piece in pieces:
        slot, equals, name = piece.rpartition("=")
        if equals or not slots:
            slots.append((slot.strip() or None, []))
        slots[-1][1].append(name.strip())
    return slots


def _results(operation: Operation, names: list[str], types: list[str] | None) -> list[Variable]:
    """Returns the results with what the attributes say of each."""
    known = types if types is not None and len(types) == len(names) else [""] * len(names)
    if types is not None and len(types) != len(names):
        operation.damage = operation.damage or "it has other numbers of results and of types"
    result = [pir_text.typed(name, text) for name, text in zip(names, known, strict=True)]
    if not all(map(pir_text.is_read, result, known)):
        operation.damage = operation.damage or "its types cannot be read"
    for position, variable in enumerate(result):
        variable.persistable = operation.kind in ("parameter", "buffer")
        variable.is_parameter = operation.kind == "parameter"
        if isinstance(stop := _of(operation, "stop_gradient", position), bool):
            variable.attributes["stop_gradient"] = stop
    return result


def _of(operation: Operation, name: str, position: int) -> Any:
    """Returns what a list of the attributes says of one result."""
    held = operation.attributes.get(name)
    return held[position] if isinstance(held, list) and position < len(held) else None


def _name(operation: Operation) -> None:
    """Fills kind and name of what stands for a parameter, other state, an input or an output."""
    operation.kind = KINDS.get(operation.type, "op")
    if operation.type == "pd_op.data" and any(_of(operation, name, 0) is True for name in STATE):
        operation.kind = "buffer"
    if operation.type == "builtin.parameter" and _is_state(operation.attributes):
        operation.kind = "buffer"
    if operation.kind != "op" or operation.bare_type in ("shadow_output", "fetch"):
        named = (operation.attributes.get(name) for name in NAMES)
        operation.name = next((name for name in named if isinstance(name, str)), None)


def _is_state(attributes: dict[str, Any]) -> bool:
    """Returns whether a parameter is state of the optimizer: to 2.6 only its name told it from a parameter."""
    return (
        "is_parameter" not in attributes and OPTIMIZER_STATE.search(str(attributes.get("parameter_name"))) is not None
    )
