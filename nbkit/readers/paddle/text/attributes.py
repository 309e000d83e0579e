"""Reads attributes of a readable operation: `name = value, name = value`, where a value may be text without quotes.

Such text may hold `, word = ` itself. Paddle prints attributes sorted by name, so what begins one is told by the order.
"""

import re
from bisect import bisect_left
from typing import Any

from nbkit.readers.paddle.text import dist_attr
from nbkit.readers.paddle.text.values import value, value_list

FIRST = re.compile(r"([^\s=,(){}\[\]'\"]+) = ?")
NEXT = re.compile(r", ([^\s=,(){}\[\]'\"]+) = ?")
PROGRAM = re.compile(r"\s{1,100}\{ // block")
PROGRAM_END = re.compile(r"\n[ \t]*+\}(?=, |\Z)")
DIST_ATTR = "dist_attr"
# How often text that looks like dist_attr may turn out to be none.
MOST_TRIES = 5


def parse(text: str, *, is_sorted: bool = True) -> tuple[dict[str, Any], bool]:
    """Returns attributes by name, and whether all of the text was read; dist_attr as `dist_attr.parse()` returns it."""
    match = FIRST.match(text)
    if match is None:
        return {}, not text.strip(" ,")
    starts = _starts(text, match)
    if is_sorted:
        starts = _ascending(starts)
    ends = [start for start, _, _ in starts[1:]] + [len(text)]
    attributes: dict[str, Any] = {}
    whole = True
    for (_, name, position), end in zip(starts, ends, strict=True):
        raw = text[position:end]
        if name == DIST_ATTR and raw.startswith("{"):
            whole = whole and raw.endswith("}")
            attributes.setdefault(name, dist_attr.parse(raw))
        else:
            attributes.setdefault(name, value(raw))
    return attributes, whole


def _starts(text: str, first: re.Match[str]) -> list[tuple[int, str, int]]:
    """Yields where an attribute may begin, its name, where its value does; nothing inside a list or dist_attr."""
    starts = [(0, first[1], first.end())]
    tries = MOST_TRIES
    while True:
        _, name, position = starts[-1]
        if name == DIST_ATTR and tries and text.startswith("{", position):
            tries -= 1
            if _reaches_end(text, position):
                return starts
        after = position
        if text.startswith("[", position):
            after = _after_list(text, position)
        elif text.startswith("\n", position):
            after = _after_program(text, position)
        match = NEXT.search(text, after)
        if match is None:
            return starts
        starts.append((match.start(), match[1], match.end()))


def _reaches_end(text: str, position: int) -> bool:
    """Returns whether the braces at `position` enclose the rest; also where they are cut or a name has brackets."""
    end = dist_attr.closing(text, position)
    return end is None or end == len(text) - 1


def _after_list(text: str, position: int) -> int:
    """Returns where the list at `position` ends, if another attribute or nothing follows; else `position`."""
    read = value_list(text, position + 1)
    if read and (read[1] == len(text) or NEXT.match(text, read[1])):
        return read[1]
    return position


def _after_program(text: str, position: int) -> int:
    """Returns where the text of a whole program ends, which is on lines of its own; else `position`."""
    if not PROGRAM.match(text, position):
        return position
    match = PROGRAM_END.search(text, position)
    return match.end() if match else position


def _ascending(starts: list[tuple[int, str, int]]) -> list[tuple[int, str, int]]:
    """Returns the longest chain of ascending names from the first one on; dist_attr comes last, whatever its name."""
    first, *rest = starts
    last = [rest.pop()] if rest and rest[-1][1] == DIST_ATTR else []
    chain = _longest([name for _, name, _ in rest], first[1])
    return [first, *(rest[index] for index in chain), *last]


def _longest(names: list[str], above: str) -> list[int]:
    """Returns the longest ascending chain of names above `above`, as indices; of equally long ones the smaller names.

    Those stand later: what is taken for an attribute too early hides the ones behind it.
    """
    smallest: list[str] = []  # the smallest name that ends a chain of each length, and its index
    ends: list[int] = []
    before: list[int] = []
    for index, name in enumerate(names):
        rank = bisect_left(smallest, name) if name > above else -1
        before.append(ends[rank - 1] if rank > 0 else -1)
        if rank == len(smallest):
            smallest.append(name)
            ends.append(index)
        elif rank >= 0 and smallest[rank] != name:
            smallest[rank], ends[rank] = name, index
    chain = []
    index = ends[-1] if ends else -1
    while index >= 0:
        chain.append(index)
        index = before[index]
    return chain[::-1]
