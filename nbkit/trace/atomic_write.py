"""Writes a file whole or not at all."""

import gzip
import io
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from nbkit.errors import TraceError, first_line


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
        is_folder = os.path.isdir(path)
        reason = "it is a folder; give the name of a file in it." if is_folder else why_not(path, error)
        raise TraceError(f"Cannot write {what} to {path}: {reason}") from error
    finally:
        if partial is not None:
            partial.unlink(missing_ok=True)


def why_not(path: Path, error: Exception, advice: str = "free space or choose another place") -> str:
    """Returns why nothing can be written to `path`, and what to do."""
    if file := next((above for above in path.parents if os.path.exists(above) and not os.path.isdir(above)), None):
        return f"{file} is no folder; choose another place."
    reason = error.strerror if isinstance(error, OSError) and error.strerror else first_line(error).rstrip(".")
    return f"{reason[:1].lower()}{reason[1:]}; {advice}."
