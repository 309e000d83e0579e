"""Reads programs as protobuf text (`Program.to_string()`, `str(program)` of the first releases), one field per line."""

import re

from nbkit.readers.paddle.records import Block, Program
from nbkit.readers.paddle.text import protobuf_records
from nbkit.readers.paddle.text.prefix import Prefix
from nbkit.readers.paddle.text.protobuf_records import Message
from nbkit.readers.skipped_lines import SkippedLines

FORM = "protobuf text"
OPENS = re.compile(r"(\w{1,60}) ?\{")
FIELD = re.compile(r"(\w{1,60}): ?(.+)", re.DOTALL)
TOP = ("blocks", "version", "op_version_map")
RECORDS = ("vars", "ops")
DEEPEST, MOST_BLOCKS = 30, 1 << 30
CUT = "its record is cut"


def begins(text: str) -> bool:
    """Returns whether the line begins a block of such a text."""
    return text.rstrip().endswith("blocks {")


class ProtobufReader:
    """Takes the lines of a file in order and adds to `programs` what they are; `close()` ends the last record."""

    def __init__(self, programs: list[Program], skipped: SkippedLines) -> None:
        self._programs = programs
        self._skipped = skipped
        self._prefix = Prefix()
        self._program: Program | None = None
        self._block: Block | None = None
        self._open: list[tuple[str, Message, int]] = []  # messages with their names and first lines

    @property
    def is_open(self) -> bool:
        """Returns whether a block has begun and not ended."""
        return bool(self._open)

    def line(self, number: int, text: str) -> None:
        """Takes the next line, its number from 1."""
        if not self._open and begins(text):
            self._prefix.learn(text.rstrip().removesuffix("blocks {"))
        text = self._prefix.strip(text).strip()
        if match := OPENS.fullmatch(text):
            self._begin(number, match[1])
        elif text == "}":
            self._end(is_cut=False)
        elif self._open and (match := FIELD.fullmatch(text)):
            self._field(match[1], match[2])
        elif self._open and text:
            self._skipped.add(number, text, "is no field of a message")

    def close(self) -> None:
        """Takes note that the file has ended."""
        while self._open:
            self._end(is_cut=True)
        if self._program:
            protobuf_records.find_parameters(self._program)

    def _begin(self, number: int, name: str) -> None:
        """Begins a message; one that can only stand further out ends those that have lost their ends."""
        depth = 0 if name in TOP else 1 if name in RECORDS else None
        while depth is not None and len(self._open) > depth:
            self._end(is_cut=True)
        if not self._open:
            if name == "blocks":
                self._block = Block(-1, line=number)
            elif name in RECORDS and self._block:
                self._open.append(("blocks", {}, number))
            elif name not in TOP:
                return
        self._open.append((name, {}, number))

    def _end(self, *, is_cut: bool) -> None:
        if not self._open:
            return
        name, message, line = self._open.pop()
        if name in RECORDS and len(self._open) == 1:
            self._record(name, message, line, is_cut=is_cut)
        elif name == "blocks" and self._block:
            self._insert_block()
            if self._program and not is_cut:
                self._program.closed = True
        elif 0 < len(self._open) < DEEPEST:
            self._open[-1][1].setdefault(name, []).append(message)

    def _field(self, name: str, text: str) -> None:
        value = protobuf_records.scalar(text)
        self._open[-1][1].setdefault(name, []).append(value)
        if len(self._open) == 1 and self._block and isinstance(value, int):
            if name == "idx" and 0 <= value < MOST_BLOCKS:
                self._insert_block(value)
            elif name in ("parent_idx", "forward_block_idx"):
                setattr(self._block, name.partition("_")[0], value)

    def _insert_block(self, index: int = 0) -> None:
        """Gives the block its index, if it has none, and its place in this program or in the next."""
        if self._block is None or self._block.index >= 0:
            return
        self._block.index = index
        if self._program is None or (self._program.blocks and index <= max(self._program.blocks)):
            if self._program:
                protobuf_records.find_parameters(self._program)
            self._program = Program(FORM)
            self._programs.append(self._program)
        self._program.blocks[index] = self._block
        self._program.closed = False

    def _record(self, name: str, message: Message, line: int, *, is_cut: bool) -> None:
        self._insert_block()
        if self._block is None:
            return
        variable = protobuf_records.variable(message) if name == "vars" else None
        operation = protobuf_records.operation(message) if name == "ops" else None
        if variable:
            variable.line = line
            self._block.declare(variable)
        elif operation:
            operation.line = line
            operation.damage = CUT if is_cut else None
            self._block.operations.append(operation)
        if is_cut or not (variable or operation):
            self._skipped.add(line, f"{name} {{", CUT if is_cut else "has no name or type")
