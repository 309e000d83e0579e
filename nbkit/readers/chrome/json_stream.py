"""Reads JSON of any size, value by value, in a window over its text: memory is that of the largest single value."""

import json
import re
from collections.abc import Callable, Iterator
from json import JSONDecodeError
from typing import Any

from nbkit.readers.chrome.lenient import KEYS, field_at, may_go_on, meant

SPACE = re.compile(r"[ \t\r\n]*")
BETWEEN = re.compile(r"[ \t\r\n,]*")
# How far before the window's end an error can stand that only says the window ends: a cut literal, number or escape.
CUT = 32
# A number may go on behind the window, and what the window has of that may not be part of it yet: "2." and "2e+" are 2.
NUMBER_TAIL = 2
# A text without an end is cut off by the window, unless it has grown beyond any value of a trace.
LARGEST = 1 << 26
# So much text is offered at once, and no less; its end is a border of two events within its last characters.
BULK, LEAST_BULK, BORDER_WITHIN = 1 << 21, 1 << 18, 1 << 16
BORDER = re.compile(rf'(}})\s*+,\s*+{{\s*+"(?:{KEYS})"')


class JsonError(Exception):
    """Says where a text is not JSON, in which field of an event, and whether it merely ends too early."""

    def __init__(self, message: str, position: int, is_cut: bool, field: str | None = None) -> None:
        super().__init__(message)
        self.position = position
        self.is_cut = is_cut
        self.field = field


class JsonStream:
    """Reads the values of a JSON text forwards; raises JsonError where the text cannot be read or ends too early.

    `odd` counts values that are no JSON and were read as they are meant; `first_odd` is line and field of the first.
    """

    def __init__(self, pieces: Iterator[str]) -> None:
        self._pieces = pieces
        self._text = ""
        self._at = 0
        self._dropped, self._lines = 0, 0  # characters and ends of lines before the window
        self.odd, self.first_odd = 0, (0, "")
        self.is_open = False

    @property
    def position(self) -> int:
        """Returns how many characters were read so far."""
        return self._dropped + self._at

    def line(self, position: int) -> int:
        """Returns the line, from 1, of a character that was not read yet, or just now."""
        return self._lines + self._text.count("\n", 0, max(position - self._dropped, 0)) + 1

    def head(self) -> str:
        """Returns the text from here on, as far as it has been read."""
        return self._text[self._at : self._at + 10_000]

    def rest(self) -> int:
        """Reads what is left, and returns how many characters that are."""
        left = len(self._text) - self._at + sum(map(len, self._pieces))
        self._at = len(self._text)
        return left

    def peek(self) -> str:
        """Returns the next character that is not white space; "" at the end."""
        while True:
            self._at = SPACE.match(self._text, self._at).end()  # type: ignore[union-attr]
            if self._at < len(self._text) or not self._more():
                return self._text[self._at : self._at + 1]

    def take(self, expected: str) -> None:
        """Goes past the next character, which has to be this one."""
        character = self.peek()
        if character != expected:
            raise JsonError(f"expected {expected!r}, found {character!r}", self.position, is_cut=not character)
        self._at += 1

    def fields(self) -> Iterator[str]:
        """Yields the names in an object, in turn; the caller reads each one's value before it asks for the next."""
        self.take("{")
        names = json.JSONDecoder(strict=False)
        while self.peek() != "}":
            if (found := self.peek()) not in ('"', ""):
                raise JsonError(f"expected the name of a field, found {found!r}", self.position, is_cut=False)
            name = str(self.value(names))
            self.take(":")
            yield name
            if self.peek() not in (",", "}"):
                raise JsonError("expected ',' or '}'", self.position, is_cut=not self.peek())
            while self.peek() == ",":
                self._at += 1
        self._at += 1

    def items(
        self, decoder: json.JSONDecoder, may_be_open: bool = False, bulk: Callable[[str], bool] | None = None
    ) -> Iterator[Any]:
        """Yields the values of a list, in turn; one without an end sets `is_open`, if that may be.

        `bulk` may take the text of many objects at once, which are not yielded then; false if it takes none of it.
        """
        self.take("[")
        decode, between = decoder.raw_decode, BETWEEN.match
        is_begun = False
        while True:
            while bulk is not None and is_begun and self._take_bulk(bulk):
                pass
            text, at = self._text, self._at
            try:
                while True:
                    at = between(text, at).end()  # type: ignore[union-attr]
                    if text[at] == "]":
                        self._at = at + 1
                        return
                    item, after = decode(text, at)
                    if after >= len(text) - NUMBER_TAIL:
                        break
                    at = after
                    # The caller may ask where it is, and a fault is reported from here.
                    self._at = at
                    yield item
                    if bulk is not None and not is_begun:
                        break
            except (ValueError, IndexError, RecursionError):
                pass
            is_begun = True
            yield from self._last_in_window(decoder, may_be_open)
            if self.is_open:
                return

    def _take_bulk(self, bulk: Callable[[str], bool]) -> bool:
        """Offers what lies before the last border of two objects in a large window; returns whether it was taken."""
        while len(self._text) - self._at < BULK and self._more():
            pass
        if len(self._text) - self._at < LEAST_BULK:
            return False
        begin = BETWEEN.match(self._text, self._at).end()  # type: ignore[union-attr]
        tail = max(len(self._text) - BORDER_WITHIN, begin)
        border = next(reversed([*BORDER.finditer(self._text, tail)]), None)
        if border is None or not bulk(self._text[begin : border.end(1)]):
            return False
        self._at = border.end(1)
        return True

    def _last_in_window(self, decoder: json.JSONDecoder, may_be_open: bool) -> Iterator[Any]:
        """Yields the value that the window cuts off, if there is one before the list ends."""
        while (character := self.peek()) == ",":
            self._at += 1
        self.is_open = not character and may_be_open
        if not character and not self.is_open:
            raise JsonError("the list has no end", self.position, is_cut=True)
        if character and character != "]":
            yield self.value(decoder)

    def value(self, decoder: json.JSONDecoder) -> Any:
        """Returns the next value, whole; the window grows until it holds it."""
        self.peek()
        while True:
            try:
                value, end = decoder.raw_decode(self._text, self._at)
            except JSONDecodeError as error:
                is_cut = self._is_cut(error)
                if not is_cut or not self._more():
                    return self._meant(decoder, JsonError(error.msg.lower(), self._dropped + error.pos, is_cut))
            except (ValueError, RecursionError) as error:  # a number of more digits than Python takes, 10,000 brackets
                return self._meant(decoder, JsonError(str(error).partition(";")[0], self.position, is_cut=False))
            else:
                if end < len(self._text) - NUMBER_TAIL or not self._more():
                    self._at = end
                    return value

    def _meant(self, decoder: json.JSONDecoder, fault: JsonError) -> Any:
        """Returns the next value, which is no JSON, as it is meant. Raises `fault` if nobody can tell."""
        while (found := meant(self._text, self._at, decoder)) is None:
            if not may_go_on(self._text, self._at) or not self._more():
                fault.field = field_at(self._text, self._at, fault.position - self._dropped)
                raise fault from None
        if not self.odd:
            at = fault.position - self._dropped
            self.first_odd = self.line(fault.position), field_at(self._text, self._at, at)
        self.odd += 1
        value, self._at = found
        return value

    def _is_cut(self, error: JSONDecodeError) -> bool:
        length = len(self._text)
        if error.msg.startswith("Unterminated string"):
            return length - error.pos < LARGEST
        return error.pos >= length - CUT

    def _more(self) -> bool:
        """Drops what was read and at least doubles the rest, so that a large value is tried a few times only.

        False, and nothing has changed, at the end of the text.
        """
        rest = self._text[self._at :]
        added, wanted = [], max(len(rest), 1)
        while wanted > 0:
            piece = next(self._pieces, None)
            if piece is None:
                break
            added.append(piece)
            wanted -= len(piece)
        if not any(added):
            return False
        self._dropped += self._at
        self._lines += self._text.count("\n", 0, self._at)
        self._text, self._at = rest + "".join(added), 0
        return True
