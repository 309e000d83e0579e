"""Reads values of attributes: numbers, booleans, lists, references to blocks and variables; all else is text."""

import re
from typing import Any

from nbkit.readers.paddle.records import BlockReference, VariableReference
from nbkit.readers.paddle.text.strings import STRING, string_list, unquoted

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
