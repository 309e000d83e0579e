"""Reads values of attributes: quoted texts, numbers, booleans, lists, references; all else is text."""

import re
from typing import Any

from nbkit.readers.paddle.records import BlockReference, VariableReference

# The possessive repeats (*+) never give back what they took: a missing quote costs one pass, not a search.
STRING = re.compile(r"""[uUbB]?(?:'(?:[^'\\]|\\.)*+'|"(?:[^"\\]|\\.)*+")""", re.DOTALL)
ESCAPE = re.compile(r"\\(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-7]{1,3}|.)", re.DOTALL)
SIMPLE = {"n": "\n", "t": "\t", "r": "\r"}
# Longer runs of digits are no number that a program holds, and Python refuses to convert some.
INTEGER = re.compile(r"[-+]?\d{1,300}L?")
FLOAT = re.compile(r"[-+]?(?:\d{1,300}\.\d{0,300}|\.\d{1,300}|\d{1,300}(?=[eE]))(?:[eE][-+]?\d{1,3})?")
WORDS = {"True": True, "False": False, "true": True, "false": False}
BLOCKS = re.compile(r"blocks?\[((?:\d{1,9}(?:, ?)?)*+)\]")
VARIABLES = re.compile(r"Vars?\[")
ITEM = re.compile(r"[^\[\],'\"]+")
DEEPEST = 8


def value(text: str) -> Any:
    """Returns what an attribute's text stands for; the text itself if it is none of the kinds above."""
    if text in WORDS:
        return WORDS[text]
    if text.startswith("["):
        read = value_list(text, 1)
        return read[0] if read and read[1] == len(text) else text
    if text.startswith(("block", "Var")):
        return _reference(text)
    return number(text)


def number(text: str) -> Any:
    """Returns the integer or the finite float that `text` is, else `text`."""
    if INTEGER.fullmatch(text):
        return int(text.rstrip("L"))
    if FLOAT.fullmatch(text) and abs(read := float(text)) != float("inf"):
        return read
    return text


def value_list(text: str, position: int, depth: int = 0) -> tuple[list[Any], int] | None:
    """Returns the items of the list whose `[` is before `position`, and where it ends; None if it is no list."""
    items: list[Any] = []
    while depth < DEEPEST and position < len(text):
        if text[position] in ", ":
            position += 1
        elif text[position] == "]":
            return items, position + 1
        elif text[position] == "[":
            if (inner := value_list(text, position + 1, depth + 1)) is None:
                return None
            items.append(inner[0])
            position = inner[1]
        elif match := STRING.match(text, position):
            items.append(unquoted(match[0]))
            position = match.end()
        elif match := ITEM.match(text, position):
            item = match[0].strip()
            items.append(WORDS[item] if item in WORDS else number(item))
            position = match.end()
        else:
            return None
    return None


def _reference(text: str) -> Any:
    if match := BLOCKS.fullmatch(text):
        indices = tuple(int(index) for index in match[1].split(",") if index.strip())
        return BlockReference(indices, text.startswith("blocks"))
    if match := VARIABLES.match(text):
        read = string_list(text, match.end())
        if read and read[1] == len(text):
            return VariableReference(tuple(read[0]), text.startswith("Vars"))
    return text


def unquoted(literal: str) -> str:
    """Returns the text that a quoted string stands for; escapes that name no character stay as they are."""
    start = 0 if literal[:1] in "'\"" else 1
    text = literal[start + 1 : -1]
    return ESCAPE.sub(_character, text) if "\\" in text else text


def string_list(text: str, position: int) -> tuple[list[str], int] | None:
    """Returns the strings of the list whose `[` is before `position`, and where it ends; None if it is no such list."""
    if text.startswith("]", position):
        return [], position + 1
    strings = []
    while match := STRING.match(text, position):
        strings.append(unquoted(match[0]))
        position = match.end()
        if text.startswith("]", position):
            return strings, position + 1
        if not text.startswith(",", position):
            return None
        position += 1
        while text.startswith(" ", position):
            position += 1
    return None


def _character(match: re.Match[str]) -> str:
    escape = match[0][1:]
    if escape[0] in "xuU" and len(escape) > 1:
        code = int(escape[1:], 16)
    elif escape[0] in "01234567":
        code = int(escape, 8)
    else:
        return SIMPLE.get(escape, escape if escape in "\\'\"" else match[0])
    # A lone surrogate is no text that can be written to a file.
    return chr(code) if code < 0x110000 and not 0xD800 <= code < 0xE000 else match[0]
