"""Reads readable programs, line by line: headers of blocks, declarations, operations, and what stands between them."""

import re

from nbkit.readers.paddle.records import Block, Program
from nbkit.readers.paddle.text import operations, variables
from nbkit.readers.paddle.text.text_reader import TextReader
from nbkit.readers.skipped_lines import SkippedLines

# The brace and more may be lost where columns are.
HEADER = re.compile(r"(?:\{ ?)?+// block(?:_idx:| )\s{0,9}(\d{1,9})(?!\d)")
LINKS = re.compile(r"\b(parent|forward|backward)_idx: ?(-?\d{1,9})(?!\d)")
JUNK = "stands before a record, which was read without it"
OUTSIDE = "is no record of a program"
FORM, HEADLESS = "readable", "readable, without a header"
MOST_CONTINUED = 10_000


class ReadableReader(TextReader):
    """Reads readable programs; `close()` ends the last record."""

    def __init__(self, programs: list[Program], skipped: SkippedLines) -> None:
        super().__init__(programs, skipped)
        self._block: Block | None = None
        self._is_open = False
        self._record: list[str] = []  # an operation that goes on in the next line
        self._record_line = 0
        self._is_nested = False  # in the text of a program that is an attribute

    @property
    def is_open(self) -> bool:
        return self._is_open

    def line(self, number: int, text: str) -> None:
        text = self._prefix.strip(text)
        if self._record and self._continues(number, text):
            return
        stripped = text.lstrip()
        if not stripped:
            return
        if variables.is_declaration(stripped) and self._declaration(number, stripped):
            return
        if match := self._header(text):
            self._open(number, match)
        elif operations.is_operation(text):
            self._start_record(number, text)
        elif self._is_open:
            self._no_record(number, stripped)
        elif " : " in text:
            self._declaration(number, text)

    def close(self) -> None:
        self._end_record(is_cut=True)

    def _header(self, text: str) -> re.Match[str] | None:
        match = HEADER.search(text) if "// block" in text else None
        return match if match and operations.INPUTS not in text[: match.start()] else None

    def _open(self, number: int, match: re.Match[str]) -> None:
        if before := match.string[: match.start()].strip():
            self._prefix.learn(before)
        self._block = Block(int(match[1]), line=number)
        for name, block in LINKS.findall(match.string):
            setattr(self._block, name, int(block))
        self._place(self._block, FORM)
        self._is_open = True

    def _current(self, number: int) -> Block:
        """Returns the block of a record; where no header precedes it, that of a program without headers."""
        if self._block is None:
            self._block = self._new_program(HEADLESS).blocks[0] = Block(0, line=number)
        return self._block

    def _declaration(self, number: int, text: str) -> bool:
        read = variables.parse(text)
        if read is None:
            return False
        variable, damage = read
        variable.line = number
        self._current(number).declare(variable)
        if self._program and self._program.form == FORM and variable.shape is not None:
            self._program.form = _spelling(text, variable.type)
        self._junk(number, variables.before(text))
        if damage:
            self._skipped.add(number, text, damage)
        return True

    def _no_record(self, number: int, text: str) -> None:
        """Takes a line in a block that begins no record: its end, a declaration after junk, or junk."""
        if text.rstrip() == "}":
            self._is_open = False
            if self._program:
                self._program.closed = True
        elif not (" : " in text and self._declaration(number, text)):
            self._skipped.add(number, text, OUTSIDE)

    def _start_record(self, number: int, text: str) -> None:
        self._record, self._record_line = [], number
        self._extend_record(text)

    def _extend_record(self, text: str) -> None:
        self._record.append(text)
        if not self._is_nested and operations.is_whole(text):
            self._end_record(is_cut=False)

    def _continues(self, number: int, text: str) -> bool:
        """Returns whether the line belongs to the operation before it, whose record did not end there."""
        stripped = text.strip()
        if self._is_nested and not (self._header(text) and _indent(text) <= _indent(self._record[0])):
            self._is_nested = not stripped.startswith(("})", "}, "))
        elif self._begins_nested(text):
            self._is_nested = True
        elif self._begins_record(text, stripped) or len(self._record) > MOST_CONTINUED:
            self._end_record(is_cut=True)
            return False
        self._extend_record(text)
        return True

    def _begins_nested(self, text: str) -> bool:
        """Returns whether a program begins that is the value of an attribute: deeper than the operation itself."""
        if not self._record[-1].rstrip().endswith("=") or not self._header(text):
            return False
        return _indent(text) > _indent(self._record[0])

    def _begins_record(self, text: str, stripped: str) -> bool:
        if stripped == "}" or self._header(text) or operations.is_operation(text):
            return True
        return variables.is_declaration(stripped) and variables.parse(stripped) is not None

    def _end_record(self, *, is_cut: bool) -> None:
        record, self._record, self._is_nested = self._record, [], False
        if not record:
            return
        # Lines after one that was cut are not its own.
        text = record[0] if is_cut else "\n".join(record)
        self._operation(self._record_line, text)
        for offset, text in enumerate(record[1:], 1) if is_cut else ():
            if text.strip():
                self._skipped.add(self._record_line + offset, text, OUTSIDE)

    def _operation(self, number: int, text: str) -> None:
        read = operations.parse(text)
        if read is None:
            self._skipped.add(number, text, "no operation can be told from it")
            return
        operation, junk = read
        operation.line = number
        self._current(number).operations.append(operation)
        self._junk(number, junk)
        if operation.damage:
            self._skipped.add(number, text, operation.damage)

    def _junk(self, number: int, text: str) -> None:
        """Skips what stands before a record; without a header the first record tells what stands before all of them."""
        block = self._current(number)
        if self._program and self._program.form == HEADLESS and len(block.operations) + len(block.variables) == 1:
            self._prefix.learn(text)
        elif text.strip():
            self._skipped.add(number, text, JUNK)


def _spelling(text: str, kind: str) -> str:
    """Returns the releases that print a declaration like this one."""
    if ".astype(" in text:
        return f"{FORM} (to 2.0)"
    return f"{FORM} ({'3.x' if kind == 'DENSE_TENSOR' else '2.1 to 2.6'})"


def _indent(text: str) -> int:
    return len(text) - len(text.lstrip())
