"""Reads docstrings in parts: for the options of a verb and the pages in docs/."""

import inspect
import re
from dataclasses import dataclass

SECTIONS = ("Args", "Raises")
ENTRY = re.compile(r"^([\w, *]+): (.*)", re.DOTALL)


@dataclass(frozen=True)
class Doc:
    """A docstring in parts: its first line, its other paragraphs, and entries (name, meaning) of Args and Raises."""

    head: str
    body: str
    args: list[tuple[str, str]]
    raises: list[tuple[str, str]]


def read(thing: object) -> Doc:
    """Returns the docstring of `thing`. Raises LookupError if it has none: what is public says what it is."""
    text = inspect.getdoc(thing)
    if not text:
        raise LookupError(f"{thing!r} has no docstring; write one.")
    body: list[str] = []
    entries: dict[str, list[tuple[str, str]]] = {name: [] for name in SECTIONS}
    for paragraph in re.split(r"\n\s*\n", text):
        name, _, rest = paragraph.partition(":\n")
        if name in SECTIONS:
            entries[name] = _entries(inspect.cleandoc("\n" + rest))
        else:
            body.append(paragraph)
    return Doc(body[0], "\n\n".join(body[1:]), entries["Args"], entries["Raises"])


def _entries(text: str) -> list[tuple[str, str]]:
    result = []
    for entry in re.split(r"\n(?=\S)", text):
        match = ENTRY.match(re.sub(r"\s*\n\s*", " ", entry))
        if match is None:
            raise LookupError(f"An entry of a docstring is not of the form 'name: meaning': {entry!r}.")
        result.append((match[1], match[2]))
    return result
