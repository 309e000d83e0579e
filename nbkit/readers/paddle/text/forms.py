"""Tells the forms of text that a Paddle program has: which of them a line begins, and the reader that takes it on."""

import re
from collections.abc import Callable

from nbkit.readers.paddle.records import Program
from nbkit.readers.paddle.text import pir, protobuf_text
from nbkit.readers.paddle.text.pir import PirReader
from nbkit.readers.paddle.text.protobuf_text import ProtobufReader
from nbkit.readers.paddle.text.readable import ReadableReader
from nbkit.readers.paddle.text.text_reader import TextReader
from nbkit.readers.rank_tags import RankTags
from nbkit.readers.skipped_lines import SkippedLines

READABLE = re.compile(r"// block(?:_idx:| )\s{0,9}\d|\(inputs=")
DECLARATION = re.compile(
    r"(?:persist|trainable|param|parameter|var) [^\n]{0,2000} : (?:[\w.]{1,60}\.)?[A-Z_]{3,40}(?:\.shape\(|\))"
)


def begins_readable(text: str) -> bool:
    """Returns whether the line belongs to a readable program."""
    if "// block" in text or "(inputs=" in text:
        return READABLE.search(text) is not None
    return " : " in text and DECLARATION.match(text.lstrip(" #\t")) is not None


def begins(text: str) -> bool:
    """Returns whether the line begins or belongs to a program of any form."""
    return begins_readable(text) or protobuf_text.begins(text) or pir.begins(text)


class RanksReader:
    """Takes the lines of a file in order, apart by the rank that a launcher writes before them: `[1,0]<stdout>:`.

    `ended` takes every program as soon as it has ended, so that only those that are open are held.
    """

    def __init__(self, tags: RankTags, skipped: SkippedLines, ended: Callable[[Program], None]) -> None:
        self._tags = tags
        self._skipped = skipped
        self._ended = ended
        self._readers: dict[int | None, AnyReader] = {}

    def line(self, number: int, text: str) -> None:
        """Takes the next line, its number from 1."""
        found, rest = self._tags.rank_and_rest(text)
        rank = None if found is None else int(found)
        if rank not in self._readers:
            self._readers[rank] = AnyReader(self._skipped, self._ended, rank)
        self._readers[rank].line(number, text if found is None else rest.removeprefix(" "))

    def close(self) -> None:
        """Takes note that the file has ended."""
        for rank in sorted(self._readers, key=lambda rank: -1 if rank is None else rank):
            self._readers[rank].close()


class AnyReader:
    """Takes the lines of a file in order and hands each to the reader of its form; `ended` takes every program."""

    def __init__(self, skipped: SkippedLines, ended: Callable[[Program], None], rank: int | None) -> None:
        self._ended = ended
        self._rank = rank
        self._programs: list[Program] = []
        self._readable = ReadableReader(self._programs, skipped)
        self._pir = PirReader(self._programs, skipped)
        self._protobuf = ProtobufReader(self._programs, skipped)
        self._current: TextReader | None = None
        self._brace: tuple[int, str] | None = None  # the last line before, if a brace ends it

    def line(self, number: int, text: str) -> None:
        """Takes the next line, its number from 1."""
        if (reader := self._next_reader(text)) is not None:
            if self._current is not None:
                self._current.close()
            self._current = reader
            if reader is self._pir and self._brace:
                reader.line(*self._brace)
        if self._current is not None:
            self._current.line(number, text)
        if len(self._programs) > 1:
            self._end()
        self._brace = (number, text) if pir.opens(text) else None

    def close(self) -> None:
        """Takes note that the file has ended."""
        if self._current is not None:
            self._current.close()
        while self._programs:
            self._end()

    def _end(self) -> None:
        """Hands over the first program: another has begun, or the file has ended."""
        program = self._programs.pop(0)
        program.rank = self._rank
        self._ended(program)

    def _next_reader(self, text: str) -> TextReader | None:
        """Returns the reader of another form that begins here, if one does; inside a program none begins."""
        current = self._current
        if current is not None and current.is_open and not text.startswith(("{ // block", "blocks {")):
            return None
        if current is not self._protobuf and protobuf_text.begins(text):
            return self._protobuf
        if current is not self._readable and begins_readable(text):
            return self._readable
        return self._pir if current is not self._pir and pir.begins(text) else None
