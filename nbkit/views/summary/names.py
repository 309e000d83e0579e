"""Prepares names to be shown: op, module and source on one line, with nothing that could disturb a page."""

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence

LIMIT = 200
ROOT = "(root)"
OUTSIDE = "outside modules"
# Marks that turn the direction of the text around them, so that a name could make its neighbors unreadable.
_DIRECTIONS = frozenset("\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u061c")
_HIDDEN_KINDS = ("Cc", "Cs", "Zl", "Zp")
# A file of an installed package; a file at an absolute path in two folders or more.
_FOLDERS = r"(?:[^/\\\s:'\"]+[/\\])"
_PACKAGED = re.compile(
    rf"(?<![\w.~+@-])(?:[A-Za-z]:)?[/\\]?{_FOLDERS}*(?:site|dist)-packages[/\\]([\w.-]+)[/\\]{_FOLDERS}*?([^/\\\s:'\"]+\.py)\b"
)
_ABSOLUTE = re.compile(rf"(?<![\w.~…/\\-])(?:[A-Za-z]:)?[/\\]{_FOLDERS}+({_FOLDERS})([^/\\\s:'\"]+\.py)\b")


def shown(text: str, limit: int = LIMIT) -> str:
    """Puts `text` on one line, escapes invisible characters, and cuts it to `limit` with an ellipsis."""
    if not text.isascii() or not text.isprintable():
        text = "".join(_visible(character) for character in text[: limit + 1])
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def short_paths(text: str) -> str:
    """Shortens paths of Python files in a text: 'transformers/.../modeling_gpt2.py:549', '.../project/train.py:7'."""
    if "/" not in text and "\\" not in text:
        return text
    text = _PACKAGED.sub(lambda match: _of_package(match[0], match[1], match[2]), text)
    return _ABSOLUTE.sub(r".../\1\2", text)


def _of_package(path: str, package: str, file: str) -> str:
    is_direct = re.split(r"[/\\]", path)[-2] == package
    return f"{package}/{file}" if is_direct else f"{package}/.../{file}"


def line_text(source: object, own_source: object = None, text: object = None) -> str:
    """Words a line with its text, the user's own first where that of the op is a library's; empty without a line."""
    if not isinstance(source, str):
        return ""
    line = f"{source}: `{text}`" if isinstance(text, str) else source
    return f"{own_source} (in {line})" if isinstance(own_source, str) else line


def short_sources(sources: Sequence[str]) -> list[str]:
    """Returns source lines with short paths; those that would read the same stay as they are."""
    short = [short_paths(source) for source in sources]
    counts = Counter(short)
    return [text if counts[text] == 1 else source for text, source in zip(short, sources, strict=True)]


def shown_module(model: object, module: object, *, with_model: bool = False) -> str:
    """Names a module: its path, '(root)' for the root model, 'outside modules' for none; with its model if asked."""
    if not isinstance(module, str):
        return OUTSIDE
    path = shown(module) if module else ROOT
    return f"{shown(model)}: {path}" if with_model and isinstance(model, str) else path


def short_op(op: str) -> str:
    """Names an op where room is short: without aten and the overload that has no name of its own."""
    return shown(op.removeprefix("aten.").removesuffix(".default"))


def _visible(character: str) -> str:
    is_hidden = character in _DIRECTIONS or unicodedata.category(character) in _HIDDEN_KINDS
    return character.encode("unicode_escape").decode("ascii") if is_hidden else character
