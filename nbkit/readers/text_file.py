"""Reads text of a file that may be gzipped or in UTF-16: piece by piece, or line by line."""

import codecs
import gzip
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from time import monotonic
from typing import IO, cast

from nbkit.errors import TraceError
from nbkit.progress import Progress

GZIP = b"\x1f\x8b"
PIECE_BYTES = 1 << 20
MEGABYTE = 1e6
# What a line has beyond this is dropped: a binary file may have no line ends at all.
LONGEST_LINE = 1 << 22
ESCAPED_BYTES = re.compile("[\udc80-\udcff]")
REPLACEMENT = "\ufffd"


def text_pieces(path: Path) -> Iterator[str]:
    """Yields the text of the file in pieces, unpacked where its first bytes say gzip; progress is shown meanwhile.

    Bytes that are not UTF-8 become U+FFFD: a kernel's name must not cost the trace. Raises TraceError if the file
    cannot be read, is empty, or if its gzip data are damaged.
    """
    try:
        if path.stat().st_size == 0:
            raise TraceError(f"{path} is empty; a trace holds at least a list of events: export or copy it again.")
        decoder = Decoder()
        yield from (decoder.decode(piece) for piece in _pieces(path))
        yield decoder.decode(b"", final=True)
    except EOFError as error:
        raise TraceError(
            f"{path} ends in the middle of its gzip data; copy it again whole, or export it again."
        ) from error
    except (gzip.BadGzipFile, zlib.error) as error:
        raise TraceError(f"{path} has damaged gzip data ({error}); copy it again, or export it again.") from error
    except OSError as error:
        raise cannot_read(path, error) from error


def text_lines(path: Path) -> "TextLines":
    """Returns the file's lines without their ends, decoded and unpacked like `text_pieces()`; shows progress meanwhile.

    They are read while they are iterated over, which raises TraceError if the file cannot be read. What is wrong with
    the text itself raises nothing: it is in the attributes of the result. An empty file has no lines.
    """
    return TextLines(path)


class TextLines:
    """Reads the lines of a text file once and forwards; what was wrong with it so far is in the attributes.

    `undecodable_bytes` became U+FFFD; `shortened` counts lines that were longer than LONGEST_LINE characters;
    `damage` says what ended the reading too early, and is None for a file that was read to its end.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.shortened = 0
        self.damage: str | None = None
        self._decoder = Decoder()

    @property
    def undecodable_bytes(self) -> int:
        return self._decoder.undecodable_bytes

    def __iter__(self) -> Iterator[str]:
        rest, dropping = "", False
        for piece in self._texts():
            text = rest + piece
            if "\r" in text:
                text = text.replace("\r\n", "\n")
            lines = text.split("\n")
            rest = lines.pop()
            if dropping and lines:
                del lines[0]
                dropping = False
            yield from lines
            if dropping:
                rest = ""
            elif len(rest) > LONGEST_LINE:
                self.shortened += 1
                yield rest[:LONGEST_LINE]
                rest, dropping = "", True
        if rest:
            yield rest.removesuffix("\r")

    def _texts(self) -> Iterator[str]:
        try:
            for piece in _pieces(self.path):
                yield self._decoder.decode(piece)
        except EOFError:
            self.damage = "its gzip data end in the middle"
        except (gzip.BadGzipFile, zlib.error) as error:
            self.damage = f"its gzip data are damaged: {error}"
        except OSError as error:
            raise cannot_read(self.path, error) from error
        yield self._decoder.decode(b"", final=True)


class Decoder:
    """Decodes text of bytes that come in pieces: UTF-16 where they begin with its byte order mark, else UTF-8."""

    def __init__(self) -> None:
        self.undecodable_bytes = 0
        self._head = b""
        self._decoder: codecs.IncrementalDecoder | None = None
        self._replaces = False

    def decode(self, piece: bytes, final: bool = False) -> str:
        """Returns the text of the next bytes; those that cannot be decoded become U+FFFD and are counted."""
        if self._decoder is None:
            piece = self._head + piece
            if len(piece) < 2 and not final:
                self._head = piece
                return ""
            self._replaces = piece[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
            # An escaped byte is one character, which can be counted; UTF-16 has no such escape.
            encoding, errors = ("utf-16", "replace") if self._replaces else ("utf-8-sig", "surrogateescape")
            self._decoder = codecs.getincrementaldecoder(encoding)(errors)
        text = self._decoder.decode(piece, final)
        if text.isascii():
            return text
        if self._replaces:
            self.undecodable_bytes += 2 * text.count(REPLACEMENT)
            return text
        text, count = ESCAPED_BYTES.subn(REPLACEMENT, text)
        self.undecodable_bytes += count
        return text


def encodable(text: str) -> str:
    """Returns the text without halves of surrogate pairs, which JSON and pickles can name and no frame can hold."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _pieces(path: Path) -> Iterator[bytes]:
    """Yields the bytes of the file, unpacked where its first ones say gzip."""
    with path.open("rb") as file:
        head = file.read(len(GZIP))
        file.seek(0)
        # read1 gives what there is before it says that the file is damaged.
        read = gzip.GzipFile(fileobj=file).read1 if head == GZIP else cast(IO[bytes], file).read
        total, started = path.stat().st_size, monotonic()

        def describe() -> str:
            done = 0 if file.closed else file.tell()
            speed = done / MEGABYTE / max(monotonic() - started, 0.1)
            return f"reading {path.name}: {done / max(total, 1):.0%} of {total / MEGABYTE:,.0f} MB, {speed:.0f} MB/s"

        with Progress(describe, done=lambda: None if file.closed else file.tell() / max(total, 1)):
            while piece := read(PIECE_BYTES):
                yield piece


def cannot_read(path: Path, error: OSError) -> TraceError:
    """Returns the error that a file cannot be read, and why."""
    reason = (error.strerror or str(error)).lower()
    return TraceError(f"Cannot read {path}: {reason}; give a file that you may read.")
