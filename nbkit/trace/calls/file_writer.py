"""Writes the files of a folder of captured calls in a thread: contents first, and then the calls that name them."""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Protocol
from zlib import crc32

import numpy as np

# Contents that follow each other in a block: path of their file, number of the first, block, where each ends in int64.
Contents = tuple[Path, int, memoryview, np.ndarray]


class Job(Protocol):
    """Is what has been submitted to a FileWriter."""

    def done(self) -> bool: ...

    def result(self) -> int:
        """Waits for it; returns the length of what the file of contents begins with. Raises OSError."""


class FileWriter(Protocol):
    """Writes what is submitted, in this order; nothing any more after an error, as it could name what is not there."""

    def submit(self, contents: Contents | None, calls: Path, lines: list[bytes]) -> Job:
        """Has a file of contents written, if there are any, and lines added to the file `calls`."""

    def shutdown(self) -> None:
        """Waits until all is written."""


StartFileWriter = Callable[[], FileWriter]


class PythonFileWriter:
    """Is the FileWriter of a recording in Python; the library has one that does not take Python's lock."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "nbkit captures")
        self._error: OSError | None = None

    def submit(self, contents: Contents | None, calls: Path, lines: list[bytes]) -> Job:
        return self._thread.submit(self._write, contents, calls, lines)

    def shutdown(self) -> None:
        self._thread.shutdown()

    def _write(self, contents: Contents | None, calls: Path, lines: list[bytes]) -> int:
        if self._error is not None:
            raise self._error
        try:
            head_bytes = 0 if contents is None else write_contents(*contents)
            if lines:
                with calls.open("ab") as file:
                    file.write(b"".join(lines))
        except Exception as error:
            self._error = error if isinstance(error, OSError) else OSError(f"{type(error).__name__}: {error}")
            raise self._error from None
        return head_bytes


def write_contents(path: Path, first: int, block: memoryview, all_ends: np.ndarray) -> int:
    """Writes contents as a safetensors file, whole or not at all; returns the length of what the file begins with."""
    ends = all_ends.tolist()
    checksums = [crc32(block[start:end]) for start, end in zip((0, *ends), ends, strict=False)]
    head, partial = shard_head(first, ends, checksums), path.with_suffix(".part")
    try:
        with partial.open("wb") as file:
            file.write(head)
            file.write(block[: ends[-1] if ends else 0])
        os.replace(partial, path)
    except OSError:
        partial.unlink(missing_ok=True)
        raise
    return len(head)


def shard_head(first: int, ends: Sequence[int], checksums: Sequence[int]) -> bytes:
    """Returns what a safetensors file of contents begins with; each is named NUMBER-CRC32."""
    entries = [
        f'"{number}-{checksum:08x}":{{"dtype":"U8","shape":[{end - start}],"data_offsets":[{start},{end}]}}'
        for number, (start, end, checksum) in enumerate(zip((0, *ends), ends, checksums, strict=False), first)
    ]
    head = f"{{{','.join(entries)}}}".encode()
    return len(head).to_bytes(8, "little") + head
