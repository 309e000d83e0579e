"""Reads a value that is no JSON as its writer meant it: bare quotes and backslashes in texts, inf, nan, None, commas.

torch writes names of Python frames, which hold paths and sources, without escaping what JSON would have escaped.
"""

import json
import re
from collections.abc import Callable
from typing import Any

BETWEEN = re.compile(r"[ \t\r\n,]*")
NAME = re.compile(r'"((?:[^"\\\n]|\\.)*+)"\s*:\s*')
CUT_NAME = re.compile(r'"(?:[^"\\\n]|\\.)*+(?:"\s*)?\Z|\Z')
# What no bracket, comma or quote ends: a number or a word.
WORD = re.compile(r'[^\s,:\[\]{}"]++')
WHOLE = re.compile(r"-?\d{1,4000}")
WORDS = {"null": None, "None": None, "true": True, "True": True, "false": False, "False": False}
KEYS = "ph|cat|name|pid|tid|ts|dur|args|id|id2|bp|s|sf|stack|esf|estack|tts|tdur|tidx|cname|scope|v|bind_id|flow_in|flow_out"
# What may follow the text of a field: the next field, or the end of the object, with an object or a list around it.
ENDS = {
    "event": re.compile(rf'\s*+(?:,\s*+"(?:{KEYS})"\s*+:|\}}\s*+[,\]}}])'),
    "field": re.compile(r'\s*+(?:,\s*+"[^"\\\n]{1,80}+"\s*+:|\}\s*+(?:[,\]}]|\Z))'),
    "item": re.compile(r"\s*+[,\]]"),
}
TWO_TEXTS = re.compile(r'(?<!\\)"\s*+,\s*+"')
NEXT_EVENT = re.compile(r"\}\s*+,\s*+\{")
LONGEST_TEXT, DEEPEST = 1 << 16, 50


class Unreadable(Exception):
    """The text is not of this form either."""


class CutOff(Exception):
    """The text ends before the value does."""


class LenientReader:
    """Reads one value of `text`; `odd_at` is where it is no JSON first, and `field` in which field of an event.

    `key` is the field that was read last.
    """

    def __init__(self, text: str, number: Callable[[str], Any]) -> None:
        self._text = text
        self._number = number
        self.key: str | None = None
        self.field: str | None = None
        self.odd_at = -1

    def value(self, at: int, inside: str = "field", depth: int = 0) -> tuple[Any, int]:
        """Returns the value at `at` and where it ends. Raises CutOff or Unreadable."""
        character = self._character(at)
        if depth > DEEPEST:
            raise Unreadable
        if character == "{":
            return self._object(at + 1, depth + 1)
        if character == "[":
            return self._list(at + 1, depth + 1)
        return self._string(at + 1, inside) if character == '"' else self._word(at)

    def _character(self, at: int) -> str:
        if at >= len(self._text):
            raise CutOff
        return self._text[at]

    def _between(self, at: int) -> int:
        """Returns where the next value begins; more than one comma is odd."""
        end = BETWEEN.match(self._text, at).end()  # type: ignore[union-attr]
        if self._text.count(",", at, end) > 1:
            self._is_odd(at)
        return end

    def _is_odd(self, at: int) -> None:
        if self.odd_at < 0:
            self.odd_at, self.field = at, self.key

    def _object(self, at: int, depth: int) -> tuple[dict[str, Any], int]:
        found: dict[str, Any] = {}
        while self._character(at := self._between(at)) != "}":
            name = NAME.match(self._text, at)
            if name is None:
                raise CutOff if CUT_NAME.match(self._text, at) else Unreadable
            if depth == 1:
                self.key = name[1]
            found[name[1]], at = self.value(name.end(), "event" if depth == 1 else "field", depth)
            self._ends(at, "}")
        return found, at + 1

    def _list(self, at: int, depth: int) -> tuple[list[Any], int]:
        found = []
        while self._character(at := self._between(at)) != "]":
            item, at = self.value(at, "item", depth)
            found.append(item)
            self._ends(at, "]")
        return found, at + 1

    def _ends(self, at: int, bracket: str) -> None:
        """Refuses two values with nothing between them."""
        after = self._text[at : at + 80].lstrip()[:1]
        if after and after not in (",", bracket):
            raise Unreadable

    def _string(self, at: int, inside: str) -> tuple[str, int]:
        end = self._end(at, inside)
        raw = self._text[at:end]
        try:
            return str(json.loads(f'"{raw}"', strict=False)), end + 1
        except ValueError:
            self._is_odd(at)
        try:
            return str(json.loads('"' + re.sub(r'(?<!\\)"', r"\\" + '"', raw) + '"', strict=False)), end + 1
        except ValueError:
            return raw, end + 1

    def _end(self, at: int, inside: str) -> int:
        """Returns where a text ends: at the quote that what may follow such a text follows."""
        first = self._quote(at, "item" if inside == "item" else "field")
        if inside != "event" or self.key != "name":
            if TWO_TEXTS.search(self._text, at, first):
                raise Unreadable  # a colon is missing, not a backslash
            return first
        try:
            known = self._quote(at, inside)
        except (CutOff, Unreadable):
            return first
        return first if NEXT_EVENT.search(self._text, at, known) else known

    def _quote(self, at: int, inside: str) -> int:
        end = self._text.find('"', at)
        while 0 <= end < at + LONGEST_TEXT:
            before = self._text[at:end]
            is_escaped = (len(before) - len(before.rstrip("\\"))) % 2 == 1
            if not is_escaped and ENDS[inside].match(self._text, end + 1):
                return end
            end = self._text.find('"', end + 1)
        raise CutOff if len(self._text) < at + LONGEST_TEXT else Unreadable

    def _word(self, at: int) -> tuple[Any, int]:
        match = WORD.match(self._text, at)
        if match is None:
            raise Unreadable
        if match.end() == len(self._text):
            raise CutOff
        word, end = match[0], match.end()
        if word in WORDS:
            if word[0].isupper():
                self._is_odd(at)
            return WORDS[word], end
        if WHOLE.fullmatch(word):
            return int(word), end
        try:
            number = float(word.partition("(")[0])  # "-nan(ind)" is how Windows writes it
        except ValueError:
            raise Unreadable from None
        if number - number != 0:  # not finite
            self._is_odd(at)
            return number, end
        return self._number(word), end
