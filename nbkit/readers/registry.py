"""Tells what kind of file a path is from its content."""

import gzip
import re
import zlib
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

from nbkit.readers.chrome.reader import read_chrome_trace
from nbkit.readers.oneflow import reader as oneflow
from nbkit.readers.onnx import reader as onnx
from nbkit.readers.paddle import reader as paddle
from nbkit.readers.snapshot import reader as snapshot
from nbkit.readers.text_file import GZIP, text_lines
from nbkit.trace.trace import Trace

Reader = Callable[[Path], Trace]
# A list of anything but numbers and words, as a line may begin with "[1,0]<stdout>:" or "[rank0]:".
JSON = re.compile(r'\s*(?:\{\s*["}]|\[\s*(?:["{\[\]]|\Z))')
# Texts of other frameworks; those that say what they are in one place come first.
TEXTS: tuple[tuple[Callable[[str], bool], Reader], ...] = (
    (oneflow.looks_like, oneflow.read_oneflow_log),
    (paddle.looks_like, paddle.read_paddle_program),
)
# A log may begin with much other output. So many lines are looked at, so many at once.
LINES, WINDOW = 20_000, 500


def reader_of(path: Path) -> Reader:
    """Returns what reads the file: one of no known kind is for the reader of Chrome traces to refuse.

    Raises TraceError if it cannot be read at all.
    """
    # A file of such a name that does not begin so is damaged, which the reader says.
    if snapshot.looks_like(_unpacked_head(path), path.name):
        return snapshot.read_memory_snapshot
    if onnx.looks_like(_head(path)) or path.suffix == ".onnx":
        return onnx.read_onnx_model
    for number, text in enumerate(_windows(path)):
        if number == 0 and JSON.match(text):
            return read_chrome_trace
        for looks_like, reader in TEXTS:
            if looks_like(text):
                return reader
    return read_chrome_trace


def _head(path: Path) -> bytes:
    """Returns the first bytes of a file; none if it cannot be read, which whoever reads it as text reports."""
    try:
        with path.open("rb") as file:
            return file.read(16)
    except OSError:
        return b""


def _unpacked_head(path: Path) -> bytes:
    head = _head(path)
    if not head.startswith(GZIP):
        return head
    try:
        with gzip.open(path) as file:
            return file.read(16)
    except (OSError, EOFError, zlib.error):
        return b""


def _windows(path: Path) -> Iterator[str]:
    lines = islice(text_lines(path), LINES)
    while window := list(islice(lines, WINDOW)):
        yield "\n".join(window)
