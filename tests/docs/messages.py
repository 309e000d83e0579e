"""The messages that pages quote, and those that nbkit's source can say."""

import ast
import re
from collections.abc import Set
from functools import cache
from pathlib import Path

FIELD = "\0"


def quotes(text: str) -> list[str]:
    """Quoted messages of a page: each line or item of a block quote; `...` stands for what varies."""
    return [match[1] for match in re.finditer(r"^ *> (?:- )?(.+?) *$", text, re.MULTILINE)]


@cache
def templates(folder: Path) -> frozenset[str]:
    """Every text in the Python files and widgets of a folder, with a character that no text has for each field."""
    found = {piece for path in folder.rglob("*.js") for piece in path.read_text(encoding="utf-8").split('"')}
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr):
                found.add("".join(part.value if isinstance(part, ast.Constant) else FIELD for part in node.values))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.add(node.value)
    return frozenset(found)


def unknown(page: Path, known: Set[str]) -> list[str]:
    """Quotes of a page that are no whole message of nbkit."""
    return [quote for quote in quotes(page.read_text(encoding="utf-8")) if not _is_known(quote, known)]


def _is_known(quote: str, known: Set[str]) -> bool:
    pattern = re.compile(".+".join(re.escape(part) for part in quote.split("...")))
    return any(pattern.fullmatch(text) for text in known)
