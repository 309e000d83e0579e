"""Reads programs in PIR text: operations line by line, their regions as blocks of their own."""

import re

from nbkit.readers.paddle.records import Block, BlockReference, Operation, Program, Variable
from nbkit.readers.paddle.text import pir_operations
from nbkit.readers.paddle.text.pir_text import attributes, split
from nbkit.readers.paddle.text.text_reader import TextReader
from nbkit.readers.skipped_lines import SkippedLines

ARGUMENT = re.compile(r"%\w{1,40}")
REGIONS = "regions"
BRACE = re.compile(r"([^\n{]*)\{\s*+(?://.*)?")
JUNK = "stands before an operation, which was read without it"


def begins(text: str) -> bool:
    """Returns whether the line holds an operation of such a text."""
    return ") = " in text and pir_operations.START.search(text) is not None


def opens(text: str) -> re.Match[str] | None:
    """Returns a match, with what stands before it, where a brace ends the line, or a comment behind one does."""
    return BRACE.fullmatch(text)


class PirReader(TextReader):
    """Reads programs in PIR text; `close()` ends the last one, and what is open stays so."""

    def __init__(self, programs: list[Program], skipped: SkippedLines) -> None:
        super().__init__(programs, skipped)
        # The open blocks, each with the operation that holds it, and the last operation of each.
        self._open: list[tuple[Block, Operation | None]] = []
        self._last: Operation | None = None
        self._has_brace = True
        # A brace that opens a program, if an operation follows: its line and what stands before it.
        self._brace: tuple[int, str] | None = None

    @property
    def is_open(self) -> bool:
        return bool(self._open)

    def line(self, number: int, text: str) -> None:
        text = self._prefix.strip(text)
        stripped = text.strip()
        if not stripped:
            return
        if read := pir_operations.parse(text):
            self._operation(number, read)
        elif not self._open and (brace := opens(text)):
            self._brace = number, brace[1]
        elif stripped.startswith("}"):
            self._end(number, stripped)
        elif stripped == "{":
            self._region(number, self._last)
        elif stripped.startswith("^"):
            self._arguments(number, stripped)
        elif self._open:
            self._skipped.add(number, text, "is no operation")

    def close(self) -> None:
        self._open, self._program = [], None

    def _begin(self, number: int, before: str) -> None:
        """Begins a program; without a brace what follows the end of one belongs to it still."""
        if self._program is None or self._brace:
            self._has_brace = self._brace is not None
            line, before = self._brace or (number, before)
            self._prefix.learn(before)
            self._program = self._new_program("PIR")
            self._program.blocks[0] = Block(0, line=line)
        self._open = [(self._program.blocks[0], None)]
        self._last = self._brace = None

    def _is_next_program(self, read: pir_operations.Line) -> bool:
        """Returns whether a result has the name of one before, in a program without braces, as a log has it."""
        if self._has_brace or len(self._open) != 1:
            return False
        return any(variable.name in self._open[0][0].variables for variable in read.results)

    def _operation(self, number: int, read: pir_operations.Line) -> None:
        if self._is_next_program(read):
            self.close()
        if not self._open:
            self._begin(number, read.before)
        elif read.before.strip():
            self._skipped.add(number, read.before, JUNK)
        operation, block = read.operation, self._open[-1][0]
        operation.line = number
        block.operations.append(operation)
        if operation.bare_type == "while":
            self._carry(read.results, _carried(operation))
        for variable in read.results:
            variable.line = number
            block.declare(variable)
        if self._program and self._program.form == "PIR":
            self._program.form = _form(read)
        if operation.damage:
            self._skipped.add(number, f"{operation.type} {operation.outputs}", operation.damage)
        self._last = operation
        if read.has_region:
            self._region(number, operation)

    def _region(self, number: int, holder: Operation | None) -> None:
        """Begins a block that the operation `holder` holds."""
        if holder is None or self._program is None:
            return
        block = Block(len(self._program.blocks), parent=self._open[-1][0].index, line=number)
        self._program.blocks[block.index] = block
        before = holder.attributes.get(REGIONS)
        indices = before.indices if isinstance(before, BlockReference) else ()
        holder.attributes[REGIONS] = BlockReference((*indices, block.index), is_list=True)
        self._open.append((block, holder))

    def _end(self, number: int, text: str) -> None:
        """Ends a region, `} else {` with another one of the same operation, or the program."""
        if pir_operations.ARROW in text:
            self._skipped.add(number, text, "is no operation")
        if not self._open:
            return
        _, holder = self._open.pop()
        self._last = holder
        if not self._open and self._program:
            self._program.closed = True
        elif self._open and text.endswith("{"):
            self._region(number, holder)

    def _arguments(self, number: int, text: str) -> None:
        """Reads the arguments of a block: `^%arg_0 {stop_gradient:true}, %arg_1`."""
        if not self._open:
            return
        block, holder = self._open[-1]
        arguments = []
        for piece in split(text.removeprefix("^").removeprefix("kw:"))[0]:
            if match := ARGUMENT.match(piece):
                held = piece[match.end() :].strip()
                facts = attributes(split(held, 1)[0]) if held.startswith("{") else {}
                arguments.append(Variable(match[0], "argument", attributes=facts, line=number))
                block.declare(arguments[-1])
        if holder is not None and holder.bare_type == "while":
            self._carry(arguments, _carried(holder))

    def _carry(self, targets: list[Variable], names: list[str]) -> None:
        """Gives results and arguments of a loop, whose types are not printed, those of what goes into it."""
        if len(targets) != len(names):
            return
        for target, name in zip(targets, names, strict=True):
            made = (block.variables.get(name) for block, _ in reversed(self._open))
            if (source := next((variable for variable in made if variable), None)) is not None:
                target.shape, target.dtype = source.shape, source.dtype


def _carried(loop: Operation) -> list[str]:
    """Returns the values that a loop begins with."""
    return [name for slot, names in loop.inputs if slot != "cond" for name in names]


def _form(read: pir_operations.Line) -> str:
    """Returns the spelling of the text, as the types of results say it."""
    kinds = [variable.type for variable in read.results]
    if any(kind.startswith("pd_op.") for kind in kinds):
        return "PIR (as of 2.6)"
    if any(kind.startswith("builtin.") for kind in kinds):
        return "PIR (as of 2024)"
    return "PIR (3.x)" if any("tensor" in kind for kind in kinds) else "PIR"
