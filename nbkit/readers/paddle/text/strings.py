"""Reads quoted strings and lists of them, as Python and C++ print them."""

import re

# The possessive repeats (*+) never give back what they took: a missing quote costs one pass, not a search.
STRING = re.compile(r"""[uUbB]?(?:'(?:[^'\\]|\\.)*+'|"(?:[^"\\]|\\.)*+")""", re.DOTALL)
ESCAPE = re.compile(r"\\(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-7]{1,3}|.)", re.DOTALL)
BYTES = re.compile("[\x80-\xff]{2,}")
SIMPLE = {"n": "\n", "t": "\t", "r": "\r"}


def unquoted(literal: str) -> str:
    """Returns the text that a quoted string stands for; escapes that name no character stay as they are."""
    start = 0 if literal[:1] in "'\"" else 1
    text = literal[start + 1 : -1]
    return ESCAPE.sub(_character, text) if "\\" in text else text


def octal_text(literal: str) -> str:
    """Returns the same for protobuf text, which prints UTF-8 byte by byte in octal."""
    return BYTES.sub(lambda match: match[0].encode("latin-1").decode("utf-8", "replace"), unquoted(literal))


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
