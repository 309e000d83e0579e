"""READERS lists the formats; the content of a file tells which of them it is."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from nbkit.readers.chrome.reader import CHROME, read_chrome_trace
from nbkit.readers.flight_recorder.reader import FLIGHT_RECORDER
from nbkit.readers.oneflow.reader import ONEFLOW
from nbkit.readers.onnx.reader import ONNX
from nbkit.readers.paddle.reader import PADDLE
from nbkit.readers.reader import Reader, head_of, one_of
from nbkit.readers.snapshot.reader import SNAPSHOT
from nbkit.readers.text_file import text_lines
from nbkit.trace.trace import Trace

# A new format joins by its own folder and one entry here; those that say what they are in one place come first.
READERS = (CHROME, FLIGHT_RECORDER, SNAPSHOT, ONEFLOW, PADDLE, ONNX)
KINDS = one_of(READERS)
# A log may begin with much other output. So many lines are looked at, so many at once.
LINES, WINDOW = 20_000, 500


def read(path: Path) -> Trace:
    """Returns the trace of a file of any of the formats. Raises TraceError if it is absent, damaged or of none."""
    reader = reader_of(path)
    # One of no known kind is for the reader of Chrome traces to refuse.
    return read_chrome_trace(path, one_of(READERS[1:])) if reader is None else reader.read(path)


def reader_of(path: Path) -> Reader | None:
    """Returns what reads the file; None if it is of no known kind. Raises TraceError if it cannot be read at all."""
    head = head_of(path)
    for reader in READERS:
        if reader.of_bytes(head):
            return reader
    for number, text in enumerate(_windows(path)):
        for reader in READERS:
            if (number == 0 and reader.of_beginning(text)) or reader.of_text(text):
                return reader
    return None


def _windows(path: Path) -> Iterator[str]:
    lines = islice(text_lines(path), LINES)
    while window := list(islice(lines, WINDOW)):
        yield "\n".join(window)
