"""Text of a file that may be gzipped, piece by piece."""

import codecs
import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, cast

from nbkit.errors import TraceError
from nbkit.readers.progress import Progress

GZIP = b"\x1f\x8b"
PIECE_BYTES = 1 << 20


def text_pieces(path: Path) -> Iterator[str]:
    """The text of the file in pieces, unpacked where its first bytes say gzip; progress is shown meanwhile.

    Bytes that are not UTF-8 become U+FFFD: a kernel's name must not cost the trace. Raises TraceError if the file
    cannot be read, is empty, or if its gzip data are damaged.
    """
    try:
        with path.open("rb") as file:
            yield from _pieces(path, file)
    except EOFError as error:
        raise TraceError(
            f"{path} ends in the middle of its gzip data; copy it again whole, or export it again."
        ) from error
    except (gzip.BadGzipFile, zlib.error) as error:
        raise TraceError(f"{path} has damaged gzip data ({error}); copy it again, or export it again.") from error
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise TraceError(f"Cannot read {path}: {reason}; give a file that you may read.") from error


def _pieces(path: Path, file: IO[bytes]) -> Iterator[str]:
    size = path.stat().st_size
    if size == 0:
        raise TraceError(f"{path} is empty; a trace holds at least a list of events: export or copy it again.")
    head = file.read(len(GZIP))
    file.seek(0)
    data = cast(IO[bytes], gzip.GzipFile(fileobj=file)) if head == GZIP else file
    decode = codecs.getincrementaldecoder("utf-8-sig")(errors="replace").decode
    progress = Progress(path.name, size)
    try:
        while piece := data.read(PIECE_BYTES):
            yield decode(piece)
            progress.update(file.tell())
        yield decode(b"", final=True)
    finally:
        progress.close()
