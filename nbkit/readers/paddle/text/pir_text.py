"""Reads pieces of PIR text: commas outside of brackets and strings, attributes, types."""

import re
from typing import Any

from nbkit.readers.paddle.dtypes import dtype_name
from nbkit.readers.paddle.records import Variable
from nbkit.readers.paddle.text.values import DEEPEST, STRING, WORDS, number, unquoted

OPENING, CLOSING = "[({<", "])}>"
# An arrow is no bracket; a string that is never closed goes to the end of the text.
MARK = re.compile(r'->|"(?:[^"\\]|\\.)*+"?|[\[\](){}<>,]', re.DOTALL)
# `(Int32)2`, `(pd_op.DataType)float32`: values with their types, to 2024.
TYPED = re.compile(r"\([A-Za-z_][\w.:]{0,80}\)(?=\S)")
TENSOR = re.compile(r"(?:([\w.]*)\.)?(\w*tensor\w*|selected_rows)<")
HAS_SIZES = re.compile(r"\dx\w+|tensor\W*<")
SIZES = re.compile(r"((?:-?\d{1,18}x)*+)([A-Za-z]\w{0,20})")


def split(text: str, position: int = 0, marks: re.Pattern[str] = MARK) -> tuple[list[str], int | None]:
    """Returns the pieces between the commas from `position` to the bracket that closes it, and where that is.

    The end of the text closes it, too: then there is no place. Pieces are stripped; an empty list has none. `marks` are
    brackets, commas (semicolons, too) and what is none of them, though it holds such.
    """
    pieces, depth, start = [], 0, position
    end: int | None = None
    for match in marks.finditer(text, position):
        mark = match[0]
        if mark in OPENING:
            depth += 1
        elif mark in CLOSING:
            if depth == 0:
                end = match.start()
                break
            depth -= 1
        elif mark in ",;" and depth == 0:
            pieces.append(text[start : match.start()].strip())
            start = match.end()
    last = text[start : len(text) if end is None else end].strip()
    return ([*pieces, last] if pieces or last else []), end


def attributes(pieces: list[str]) -> dict[str, Any]:
    """Returns the attributes `name:value` of each piece; one without a value is True."""
    result: dict[str, Any] = {}
    for piece in pieces:
        name, colon, text = piece.partition(":")
        result.setdefault(name.strip().strip('"'), value(text.strip()) if colon else True)
    return result


def value(text: str, depth: int = 0) -> Any:
    """Returns what the text of an attribute's value stands for, without the type before it."""
    if match := TYPED.match(text):
        text = text[match.end() :]
    if text in WORDS:
        return WORDS[text]
    if text.startswith('"') and STRING.fullmatch(text):
        return unquoted(text)
    if text.startswith("[") and text.endswith("]") and depth < DEEPEST:
        return [value(piece, depth + 1) for piece in split(text[1:-1])[0]]
    if text.startswith("{") and text.endswith("}") and depth < DEEPEST:
        fields = (piece.partition(":") for piece in split(text[1:-1])[0])
        return {name.strip(): value(content.strip(), depth + 1) for name, _, content in fields}
    return number(text)


def is_read(variable: Variable, text: str) -> bool:
    """Returns whether a value has a shape, if the text of its type has sizes or says that it is a tensor."""
    return variable.shape is not None or "vec" in text or HAS_SIZES.search(text) is None


def typed(name: str, text: str) -> Variable:
    """Returns the value `name` of the type that `text` says; shape and dtype of tensors alone."""
    variable = Variable(name, text)
    match = TENSOR.match(text)
    if match is None:
        return variable
    variable.type = f"{match[1]}.{match[2]}" if match[1] else match[2]
    first, *layout = split(text, match.end())[0] or [""]
    if sizes := SIZES.fullmatch(first):
        variable.shape = tuple(int(size) for size in sizes[1].split("x") if size)
        variable.dtype = dtype_name(sizes[2])
    if layout:
        variable.attributes["dist_attr"] = value("{" + ",".join(layout) + "}")
    return variable
