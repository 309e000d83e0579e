"""Reads declarations of variables in readable programs of all ages."""

import re
from typing import Any

from nbkit.readers.element_sizes import sizes_in
from nbkit.readers.paddle.dtypes import dtype_name
from nbkit.readers.paddle.records import Variable
from nbkit.readers.paddle.text import dist_attr

# What begins a declaration: `persist trainable param x`, `persist trainable parameter x` (1.8), `var x`.
WORDS = re.compile(r"(persist )?+(trainable )?+(param|parameter|var) (?=\S)")
KEYWORDS = ("persist ", "trainable ", "param ", "parameter ", "var ")
# A name may hold blanks, colons and brackets: the last ` : TYPE` that is followed by a tail counts.
TYPE = re.compile(r" : (?:(?:\w{1,40}\.){0,3})([A-Z][A-Z_0-9]{2,40}|\d{1,3})(?=\.shape\(|\))")
TAIL = re.compile(r"\.shape\(([^()]*)\)(?:\.dtype\(([\w.]*)\)|\.astype\(([\w.]*)\))?(?:\.stop_gradient\((\w+)\))?")
DIST_ATTR = ", dist_attr = "


def is_declaration(text: str) -> bool:
    """Returns whether a line, without what stands before it, may declare a variable."""
    return text.startswith(KEYWORDS)


def parse(text: str) -> tuple[Variable, str | None] | None:
    """Returns the variable that is declared and what of it could not be read; None if this declares none."""
    start = _start(text)
    if start is None:
        return None
    declared, _, _ = text.partition(DIST_ATTR + "{")
    match = _last(declared, start.end()) or _last(text, start.end())
    if match is None:
        return None
    variable = Variable(
        name=text[start.end() : match.start()],
        type=match[1],
        persistable=bool(start[1]),
        is_parameter=start[3] != "var",
    )
    if variable.is_parameter:
        variable.attributes["trainable"] = bool(start[2])
    return variable, _fill(variable, text[match.end() :])


def before(text: str) -> str:
    """Returns what stands before the declaration in its line."""
    start = _start(text)
    return text[: start.start()] if start else ""


def _start(text: str) -> re.Match[str] | None:
    if match := WORDS.match(text):
        return match
    positions = (text.find(word) for word in KEYWORDS)
    position = min((position for position in positions if position >= 0), default=-1)
    return WORDS.match(text, position) if position >= 0 else None


def _last(text: str, position: int) -> re.Match[str] | None:
    last = None
    for match in TYPE.finditer(text, position):
        last = match
    return last


def _fill(variable: Variable, rest: str) -> str | None:
    """Takes shape, dtype and attributes from what follows the type; returns what could not be read of it."""
    if rest.startswith(")"):  # the types without a shape end in a lone bracket
        return _fill_attributes(variable, rest[1:])
    match = TAIL.match(rest)
    if match is None:
        return "its shape and dtype cannot be read"
    variable.shape = sizes_in(match[1].replace("L", "").replace(",", " ").split())
    named = match[2] or match[3]
    variable.dtype = dtype_name(named) if named else None
    if match[4]:
        variable.attributes["stop_gradient"] = match[4] == "True"
    cut = None if named and variable.shape is not None else "its shape and dtype cannot be read"
    return cut or _fill_attributes(variable, rest[match.end() :])


def _fill_attributes(variable: Variable, rest: str) -> str | None:
    rest = rest.strip()
    if rest.startswith(DIST_ATTR.strip()):
        read: dict[str, Any] = dist_attr.parse(rest.removeprefix(DIST_ATTR.strip()))
        variable.attributes["dist_attr"] = read
        return None if rest.endswith("}") else "its dist_attr is cut"
    return f"{rest[:80]!r} follows it" if rest else None
