"""Reads protobuf messages as text: a field in each line, line by line."""

import math
import re
from functools import lru_cache
from typing import Any

Message = dict[str, list[Any]]
ESCAPE = re.compile(r"\\([0-7]{1,3}|x[0-9a-fA-F]{1,2}|.)", re.DOTALL)
ESCAPED = {"n": "\n", "t": "\t", "r": "\r"}
DEEPEST = 64
CLOSES, NO_FIELD = "}", ""
LONGEST_NUMBER = 40


class TextProto:
    """Reads one message line by line; `fields` holds what was read: of each field the list of its values."""

    def __init__(self) -> None:
        self.fields: Message = {}
        self._open: list[Message] = [self.fields]

    @property
    def is_closed(self) -> bool:
        """Returns whether every brace that was opened has been closed."""
        return len(self._open) == 1

    @property
    def is_whole(self) -> bool:
        """Returns whether it can be all of a message that holds others: there is one, and none is open."""
        return self.is_closed and any(isinstance(values[0], dict) for values in self.fields.values())

    def add(self, text: str) -> bool:
        """Takes a line without the white space around it; returns False, and nothing has changed, if it is no field."""
        key, value = _parsed(text)
        if value is not None:
            self._open[-1].setdefault(key, []).append(value)
            return True
        if key == CLOSES:
            if len(self._open) == 1:
                return False
            self._open.pop()
            return True
        if key == NO_FIELD or len(self._open) > DEEPEST:
            return False
        message: Message = {}
        self._open[-1].setdefault(key, []).append(message)
        self._open.append(message)
        return True


def parsed(text: str) -> tuple[str, str | None]:
    """Returns key and value of a line; a key alone where it opens a message; CLOSES; NO_FIELD."""
    if text == CLOSES:
        return CLOSES, None
    key, colon, value = text.partition(": ")
    if not colon:
        key = text[:-1].removesuffix(" ") if text.endswith("{") else NO_FIELD
        return (key if key.isascii() and key.isidentifier() else NO_FIELD), None
    if not (key.isascii() and key.isidentifier()) or (value[:1] == '"' and (value[-1] != '"' or len(value) < 2)):
        return NO_FIELD, None
    return key, value


_parsed = lru_cache(maxsize=1024)(parsed)  # most lines recur


def text_of(value: Any) -> str:
    """Returns the text of a string field: without its quotes and escapes; "" of a message."""
    if not isinstance(value, str):
        return ""
    if value[:1] != '"':
        return value
    return _unescaped(value[1:-1]) if "\\" in value else value[1:-1]


def text(message: Message, key: str) -> str | None:
    """Returns the text of the field's first value; None if there is none."""
    values = message.get(key)
    return text_of(values[0]) if values else None


def texts(message: Message, key: str) -> list[str]:
    """Returns the texts of all values of a field."""
    return [text_of(value) for value in message.get(key, ())]


def message(parent: Message, key: str) -> Message:
    """Returns the field's first value that is a message; an empty one if there is none."""
    return next((value for value in parent.get(key, ()) if isinstance(value, dict)), {})


def messages(parent: Message, key: str) -> list[Message]:
    """Returns all values of a field that are messages."""
    return [value for value in parent.get(key, ()) if isinstance(value, dict)]


def plain(value: Any) -> Any:
    """Returns JSON data of a value: a message as an object, a field of several values as a list, numbers as numbers."""
    if isinstance(value, dict):
        return {key: plain_field(values) for key, values in value.items()}
    if value[:1] == '"':
        return text_of(value)
    if value in ("true", "false"):
        return value == "true"
    return number(value)


def plain_field(values: list[Any]) -> Any:
    """Returns JSON data of a field: its only value, or the list of them."""
    return plain(values[0]) if len(values) == 1 else [plain(value) for value in values]


def number(value: str) -> int | float | str:
    """Returns the number that a value says; its text where it is none, or one that JSON does not have."""
    if value.removeprefix("-").isdecimal() and len(value) < LONGEST_NUMBER:
        return int(value)
    number = finite(value)
    return value if number is None else number


def finite(text: str) -> float | None:
    """Returns the number that a text says; None if it says none, or one that JSON does not have."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _unescaped(text: str) -> str:
    """Decodes a text in which protobuf writes what is not ASCII as octal bytes of UTF-8."""

    def byte(match: re.Match[str]) -> str:
        code = match[1]
        if code[0] in "01234567":
            return chr(int(code, 8) & 0xFF)
        if code[0] == "x" and len(code) > 1:
            return chr(int(code[1:], 16))
        return ESCAPED.get(code, code)

    if text.isascii():
        return ESCAPE.sub(byte, text).encode("latin-1").decode("utf-8", errors="replace")
    return ESCAPE.sub(byte, text)
