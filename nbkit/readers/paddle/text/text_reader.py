"""TextReader is what the readers of all forms share: they strip what a log puts before lines, and begin programs.

What stands before a line may be a rank, a time or `# `.
"""

import re
from abc import ABC, abstractmethod

from nbkit.readers.paddle.records import Block, Program
from nbkit.readers.skipped_lines import SkippedLines

DIGITS = re.compile(r"\d+")
LONGEST = 200
# What Paddle's own log (glog) puts there: level and date, time, thread, file and line.
GLOG = re.compile(r"[IWEF]\d{4,8} \d\d:\d\d:\d\d\.\d+ +\d+ [\w./-]{1,100}:\d+\] ?")


class Prefix:
    """Learns a prefix from the line that begins a program; digits in it may be others in other lines."""

    def __init__(self) -> None:
        self._pattern: re.Pattern[str] | None = None

    def learn(self, text: str) -> None:
        """Learns the prefix from `text`, which stands before a program's first record in its line."""
        text = text.rstrip()
        if text and len(text) <= LONGEST:
            self._pattern = re.compile(r"\d+".join(map(re.escape, DIGITS.split(text))))
        else:
            self._pattern = None

    def strip(self, line: str) -> str:
        """Returns the line without the prefix; the line itself where it does not begin with it."""
        if match := GLOG.match(line):
            return line[match.end() :]
        if self._pattern and (match := self._pattern.match(line)):
            return line[match.end() :]
        return line


class TextReader(ABC):
    """Takes the lines of a file in order and adds to `programs` what they are."""

    def __init__(self, programs: list[Program], skipped: SkippedLines) -> None:
        self._programs, self._skipped = programs, skipped
        self._prefix = Prefix()
        self._program: Program | None = None

    @property
    @abstractmethod
    def is_open(self) -> bool:
        """Returns whether a block has begun and not ended."""

    @abstractmethod
    def line(self, number: int, text: str) -> None:
        """Takes the next line, its number from 1."""

    @abstractmethod
    def close(self) -> None:
        """Takes note that the file has ended, or a program of another form begins."""

    def _new_program(self, form: str) -> Program:
        self._program = Program(form)
        self._programs.append(self._program)
        return self._program

    def _place(self, block: Block, form: str) -> None:
        """Gives a block its place in this program, or in the next where this one has come further."""
        program = self._program
        if program is None or (program.blocks and block.index <= max(program.blocks)):
            program = self._new_program(form)
        program.blocks[block.index] = block
        program.closed = False
