"""Writes a file whole or not at all."""

import gzip
import io
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from nbkit.errors import TraceError


@contextmanager
def writing(path: Path, what: str) -> Iterator[TextIO]:
    """Yields a text file for what goes to `path`, gzipped if that ends in .gz; it takes the name once it is whole.

    Raises TraceError if it cannot be written; what was there before then stays, and nothing half-written is left.
    """
    partial: Path | None = None
    try:
        if path.exists() and not path.is_file() and not path.is_dir():  # replacing a device would take it away
            raise ValueError("it is there and no regular file")
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
        partial = Path(name)
        with os.fdopen(handle, "wb") as file:
            if path.suffix == ".gz":
                with (
                    gzip.GzipFile(path.stem, "wb", compresslevel=6, fileobj=file, mtime=0) as packed,
                    io.TextIOWrapper(packed, encoding="utf-8") as text,
                ):
                    yield text
            else:
                with io.TextIOWrapper(file, encoding="utf-8") as text:
                    yield text
        partial.chmod(0o644)
        partial.replace(path)
    except (OSError, ValueError) as error:  # ValueError: a name with a zero byte, a device
        reason = ((error.strerror if isinstance(error, OSError) else None) or str(error)).lower()
        raise TraceError(f"Cannot write {what} to {path}: {reason}; free space or choose another place.") from error
    finally:
        if partial is not None:
            partial.unlink(missing_ok=True)
