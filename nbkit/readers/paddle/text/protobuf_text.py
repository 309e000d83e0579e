"""Reads programs as protobuf text (`Program.to_string()`, `str(program)` of the first releases), one field per line."""

from nbkit.readers.paddle.records import Block, Program
from nbkit.readers.paddle.text import protobuf_records
from nbkit.readers.paddle.text.text_reader import TextReader
from nbkit.readers.skipped_lines import SkippedLines
from nbkit.readers.text_proto import CLOSES, NO_FIELD, Message, number, parsed

FORM = "protobuf text"
TOP = ("blocks", "version", "op_version_map")
RECORDS = ("vars", "ops")
DEEPEST, MOST_BLOCKS = 30, 1 << 30
CUT = "its record is cut"


def begins(text: str) -> bool:
    """Returns whether the line begins a block of such a text."""
    return text.rstrip().endswith("blocks {")


class ProtobufReader(TextReader):
    """Reads programs as protobuf text; `close()` ends the last record."""

    def __init__(self, programs: list[Program], skipped: SkippedLines) -> None:
        super().__init__(programs, skipped)
        self._block: Block | None = None
        self._open: list[tuple[str, Message, int]] = []  # messages with their names and first lines

    @property
    def is_open(self) -> bool:
        return bool(self._open)

    def line(self, number: int, text: str) -> None:
        if not self._open and begins(text):
            self._prefix.learn(text.rstrip().removesuffix("blocks {"))
        text = self._prefix.strip(text).strip()
        name, value = parsed(text)
        if name == CLOSES:
            self._end(is_cut=False)
        elif name == NO_FIELD:
            if self._open and text:
                self._skipped.add(number, text, "is no field of a message")
            if self._open and text.endswith("{") and ":" not in text:
                self._open.append((text, {}, number))  # a message of a damaged name ends as others do
        elif value is None:
            self._begin(number, name)
        elif self._open:
            self._field(name, value)

    def close(self) -> None:
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
        self._open[-1][1].setdefault(name, []).append(text)
        value = number(text) if len(self._open) == 1 else None
        if self._block and isinstance(value, int):
            if name == "idx" and 0 <= value < MOST_BLOCKS:
                self._insert_block(value)
            elif name in ("parent_idx", "forward_block_idx"):
                setattr(self._block, name.partition("_")[0], value)

    def _insert_block(self, index: int = 0) -> None:
        """Gives the block its index, if it has none, and its place in this program or in the next."""
        if self._block is None or self._block.index >= 0:
            return
        self._block.index = index
        before = self._program
        self._place(self._block, FORM)
        if before and before is not self._program:
            protobuf_records.find_parameters(before)

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
