"""Prepares names to be shown: op, module and source on one line, with nothing that could disturb a page."""

import unicodedata

LIMIT = 200
ROOT = "(root)"
OUTSIDE = "outside modules"
# Marks that turn the direction of the text around them, so that a name could make its neighbors unreadable.
_DIRECTIONS = frozenset("\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u061c")
_HIDDEN_KINDS = ("Cc", "Cs", "Zl", "Zp")


def shown(text: str, limit: int = LIMIT) -> str:
    """Puts `text` on one line, escapes invisible characters, and cuts it to `limit` with an ellipsis."""
    if not text.isascii() or not text.isprintable():
        text = "".join(_visible(character) for character in text[: limit + 1])
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


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
