"""Reader says all that nbkit needs to know about one format; each format has its own in its folder."""

import gzip
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from nbkit.readers.text_file import GZIP
from nbkit.trace.trace import Trace

HEAD_BYTES = 400


class Head(NamedTuple):
    """Holds what a file begins with, as it is and unpacked where that is gzip, and its name."""

    raw: bytes
    unpacked: bytes
    name: str


def head_of(path: Path) -> Head:
    """Returns what a file begins with; nothing if it cannot be read, which whoever reads it as text reports."""
    raw = unpacked = b""
    try:
        with path.open("rb") as file:
            raw = unpacked = file.read(HEAD_BYTES)
        if raw.startswith(GZIP):
            with gzip.open(path) as packed:
                unpacked = packed.read(HEAD_BYTES)
    except (OSError, EOFError, zlib.error):
        unpacked = b""
    return Head(raw, unpacked, path.name)


def no(beginning: Any) -> bool:
    """Returns False: a format is not told by this."""
    return False


@dataclass(frozen=True)
class Reader:
    """Says how a format is told and read; `nbkit.readers.registry.READERS` lists the formats.

    `words` name a file of it in messages. `of_bytes` is asked first, of what a file begins with; then `of_beginning` of
    its first lines; `of_text` of those and of the further ones, since a log may begin with much other output. `read`
    returns the trace, whose meta["verb"] names the verb that shows it, or raises TraceError.
    """

    words: str
    read: Callable[[Path], Trace]
    of_bytes: Callable[[Head], bool] = no
    of_beginning: Callable[[str], bool] = no
    of_text: Callable[[str], bool] = no


def one_of(readers: Sequence[Reader]) -> str:
    """Returns what files of these formats are called: "a Chrome trace, a Paddle program or an ONNX model"."""
    *words, last = [reader.words for reader in readers]
    return f"{', '.join(words)} or {last}"
