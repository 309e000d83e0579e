"""Reads records of several lines: each takes the lines that are its own, and says what came of it when it ends."""

from abc import ABC, abstractmethod
from collections.abc import Callable

from nbkit.readers.oneflow.text.lines import glog
from nbkit.readers.skipped_lines import SkippedLines
from nbkit.readers.text_proto import Message, TextProto, text

WORDS = ("GRAPH", "MODULE", "INPUT", "OUTPUT", "PARAMETER", "BUFFER", "OPERATOR", "CONFIG")
RECORDS = (*(f"({word}:" for word in WORDS), "[WARNING](", "[ERROR](")
LAZY = "Lazy nn.Graph name "
FREE = " for FreeEagerTensor."
# glog cuts a message at 30,000 bytes with its head; what is near that may have been cut.
# Of which the head takes about this many.
NEARLY, GLOG_HEAD = 29_900, 70
LONGEST_TENSOR = 64
LONGEST_TRACEBACK = 400
WORDS_OF_ERRORS = ("Error", "Exception", "Interrupt", "Exit", "Warning")


class Body(ABC):
    """Reads a record line by line."""

    is_finished = False

    @abstractmethod
    def add(self, number: int, line: str) -> bool:
        """Takes a line; returns False if it is none of this record's, which has ended then."""

    @property
    def is_cut(self) -> bool:
        """Returns whether something of it is missing so far: most are finished as soon as nothing is."""
        return True

    def close(self) -> None:  # noqa: B027  what has passed all on has nothing to do
        """Ends the record."""


def begins_record(line: str) -> bool:
    """Returns whether a line begins another record, whatever is being read."""
    return glog(line) is not None or line.startswith(RECORDS) or LAZY in line


class ProtoBody(Body):
    """Reads a message in text form; ends with a blank line. `done` gets its fields and whether all of it was readable.

    `field` takes a line that is a field, as `add` would: nearly all lines of a log are.
    """

    def __init__(self, line: int, done: Callable[[Message, bool], None], skipped: SkippedLines) -> None:
        self._line, self._done, self._skipped = line, done, skipped
        self._proto = TextProto()
        self._is_damaged = False
        self.field = self._proto.add

    def add(self, number: int, line: str) -> bool:
        proto = self._proto
        if proto.add(line):
            return True
        if not line:
            self.is_finished = proto.is_closed and bool(proto.fields)
            return True
        if begins_record(line):
            return False
        if line.startswith(": ") and not proto.fields and proto.add(line[2:]):
            return True
        self._is_damaged = True
        self._skipped.add(number, line, f"no field of {self._name()}")
        return True

    @property
    def is_cut(self) -> bool:
        return not self._proto.is_whole

    def close(self) -> None:
        if self.is_cut:
            self._skipped.add(self._line, self._name(), "its text is cut")
        self._done(self._proto.fields, not self.is_cut and not self._is_damaged)

    def _name(self) -> str:
        return text(self._proto.fields, "name") or "an op without a name"


class AddBody(Body):
    """Reads what follows "add op :": the name of the op, or in the first versions its whole text once more."""

    def __init__(self, done: Callable[[str, bool], None], whole: Callable[[], ProtoBody]) -> None:
        self._done, self._whole = done, whole
        self._proto: ProtoBody | None = None

    def add(self, number: int, line: str) -> bool:
        if self._proto is None and line.startswith(("name: ", ": name: ")):
            self._proto = self._whole()
        if self._proto is not None:
            taken = self._proto.add(number, line)
            self.is_finished = self._proto.is_finished
            return taken
        if begins_record(line):
            return False
        if line:
            self._done(line.removesuffix(FREE), line.endswith(FREE))
            self.is_finished = True
        return True

    @property
    def is_cut(self) -> bool:
        return self._proto is None or self._proto.is_cut

    def close(self) -> None:
        if self._proto is not None:
            self._proto.close()


class TensorBody(Body):
    """Reads a line that holds a tensor's text, which wraps; ends where its brackets do. `done` gets all of it."""

    def __init__(self, done: Callable[[str], None]) -> None:
        self._done = done
        self._parts: list[str] = []
        self._depth = 0

    def add(self, number: int, line: str) -> bool:
        if self._parts and begins_record(line):
            return False
        self._parts.append(line)
        self._depth += line.count("(") - line.count(")")
        self.is_finished = self._depth <= 0 or len(self._parts) >= LONGEST_TENSOR
        return True

    def close(self) -> None:
        self._done(" ".join(self._parts))


class SetBody(Body):
    """Reads names of ops, one a line with commas between; `done` gets them and whether glog cut them off."""

    def __init__(self, head: str, done: Callable[[list[str], bool], None]) -> None:
        self._done = done
        self._names: list[str] = []
        self._bytes = len(head.encode()) + GLOG_HEAD

    def add(self, number: int, line: str) -> bool:
        if (self._names and not self._names[-1].endswith(",")) or begins_record(line):
            return False
        self._names.append(line)
        self._bytes += len(line.encode()) + 1
        return True

    @property
    def is_cut(self) -> bool:
        return bool(self._names) and self._names[-1].endswith(",")

    def close(self) -> None:
        last = self._names[-1] if self._names else ","
        is_cut = self._bytes >= NEARLY or last.endswith(",")
        whole = self._names[:-1] if is_cut and not last.endswith(",") else self._names
        self._done([name.removesuffix(",") for name in whole], is_cut)


class TracebackBody(Body):
    """Reads a Python traceback; ends with the line of the exception, which `done` gets with its number."""

    def __init__(self, done: Callable[[int, str], None]) -> None:
        self._done = done
        self._lines = 0

    def add(self, number: int, line: str) -> bool:
        self._lines += 1
        if begins_record(line) or self._lines > LONGEST_TRACEBACK:
            return False
        name = line.partition(":")[0]
        if name.endswith(WORDS_OF_ERRORS) and " " not in name:
            self._done(number, line)
            self.is_finished = True
        return True
