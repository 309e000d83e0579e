"""Reads operations of readable programs: `{Out=['y']} = TYPE(inputs={X=['x']}, name = value)`, and as of 2018."""

import re
from dataclasses import dataclass

from nbkit.readers.paddle.records import Operation, Slots
from nbkit.readers.paddle.text import attributes
from nbkit.readers.paddle.text.values import string_list

INPUTS = "(inputs="
HEAD = re.compile(r" ?= ?([\w.]+)\(inputs=")
SLOT = re.compile(r"([^\s=\[\](){}',\"]+)=\[")
NAMES = re.compile(r"[^\[\]{}()='\"]*+")
# A line with more braces than this before its inputs is no operation.
MOST_BRACES = 100


@dataclass(frozen=True)
class Start:
    """Holds where an operation's record and its inputs begin, its type and outputs; `damage` as in Operation."""

    position: int
    inputs: int
    type: str
    outputs: Slots
    has_bare_outputs: bool = False
    damage: str | None = None


def is_operation(text: str) -> bool:
    """Returns whether the line holds an operation or what is left of one."""
    return INPUTS in text


def is_whole(text: str) -> bool:
    """Returns whether the record ends in this line."""
    return text.rstrip().endswith(")")


def parse(text: str) -> tuple[Operation, str] | None:
    """Returns the operation of a line and what stands before it there; None if no type can be told."""
    start = _start(text)
    if start is None:
        return None
    operation = Operation(start.type, outputs=start.outputs, damage=start.damage)
    inputs, end = _inputs(text, start.inputs)
    operation.inputs = inputs
    if end is None:
        operation.damage = operation.damage or "its inputs cannot be read"
    else:
        is_old = start.has_bare_outputs or not text.startswith("{", start.inputs)
        damage = _fill_attributes(operation, text[end:].rstrip(), is_sorted=not is_old)
        operation.damage = operation.damage or damage
    return operation, text[: start.position]


def _fill_attributes(operation: Operation, rest: str, *, is_sorted: bool) -> str | None:
    """Takes the attributes from what follows the inputs; returns what could not be read of it."""
    if not rest:
        return "its record is cut"
    if not rest.startswith((",", ")")):
        return "its attributes cannot be read"
    is_cut = not rest.endswith(")")
    body = rest[1:] if is_cut else rest[1:-1]
    operation.attributes, is_read = attributes.parse(body.lstrip(), is_sorted=is_sorted)
    if is_cut:
        return "its record is cut"
    return None if is_read else "its attributes cannot be read"


def _start(text: str) -> Start | None:
    """Returns the start of the record: outputs in braces, else none, else those of 2018 without braces."""
    limit = text.find(INPUTS)
    position = text.find("{")
    for _ in range(MOST_BRACES):
        if not 0 <= position < limit:
            break
        outputs, end = slots(text, position + 1, "}")
        if end is not None and (match := HEAD.match(text, end)):
            return Start(position, match.end(), match[1], outputs)
        position = text.find("{", position + 1)
    return _start_without_braces(text, limit)


def _start_without_braces(text: str, limit: int) -> Start | None:
    start = limit
    while start > 0 and (text[start - 1].isalnum() or text[start - 1] in "_."):
        start -= 1
    if start == limit:
        return None
    inputs = limit + len(INPUTS)
    before = text[:start].rstrip()
    if not before.endswith("="):
        return Start(start, inputs, text[start:limit], [])
    outputs = before[:-1].strip()
    if outputs.endswith("}"):
        return Start(start, inputs, text[start:limit], [], damage="its outputs cannot be read")
    read, end = slots(outputs, 0, "")
    if end is None:
        read = [(None, [name.strip() for name in outputs.split(",") if name.strip()])]
    return Start(text.find(outputs), inputs, text[start:limit], read, has_bare_outputs=True)


def _inputs(text: str, position: int) -> tuple[Slots, int | None]:
    """Returns inputs and where they end: `{X=['x']}`, of 2018 `[x, y]` or `X=['x']`; no end where they are damaged."""
    if text.startswith("{", position):
        return slots(text, position + 1, "}")
    if text.startswith("[", position):
        if quoted := string_list(text, position + 1):
            return [(None, quoted[0])], quoted[1]
        match = NAMES.match(text, position + 1)
        if match and text.startswith("]", match.end()):
            names = [name.strip() for name in match[0].split(",") if name.strip()]
            return [(None, names)], match.end() + 1
        return [], None
    return slots(text, position, "")


def slots(text: str, position: int, end: str) -> tuple[Slots, int | None]:
    """Returns slots from `position` up to the mark `end` and where that ends; None for it where they cannot be read."""
    pairs: Slots = []
    if end and text.startswith(end, position):
        return pairs, position + 1
    while match := SLOT.match(text, position):
        names = string_list(text, match.end())
        if names is None:
            return pairs, None
        pairs.append((match[1], names[0]))
        position = names[1]
        if end and text.startswith(end, position):
            return pairs, position + 1
        if not text.startswith(", ", position) or (not end and not SLOT.match(text, position + 2)):
            return pairs, None if end else position
        position += 2
    return pairs, None
