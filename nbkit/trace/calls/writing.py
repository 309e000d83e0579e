"""Writes captured calls into a folder while the step runs: values first, then the records that name them."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from time import monotonic
from typing import Any
from zlib import crc32

import numpy as np
from safetensors import safe_open
from safetensors.numpy import save_file

from nbkit.errors import TraceError
from nbkit.numerics.precision import Array
from nbkit.trace.atomic_write import why_not, writing
from nbkit.trace.calls.layout import CALLS, FORMAT, HEAD, PLACES, SHARD, VERSION, Record, encode, line_of_text

# Contents from this size on have a file of their own, written from where they are; smaller ones wait together.
LARGE, WAITING = 4 * 2**20, 16 * 2**20

# A process that is killed loses the calls of so many seconds at most.
EVERY_S = 1.0


class FullError(Exception):
    """Says that a content does not fit in what the folder may take."""


class CallWriter:
    """Writes one folder of at most `max_bytes`; after a crash at any time it holds whole calls only.

    Raises TraceError if the folder holds something else or cannot be written to.
    """

    def __init__(self, folder: Path, head: Mapping[str, Any], max_bytes: int) -> None:
        self.folder, self.max_bytes = folder, max_bytes
        self.size_bytes = self.calls = self.contents = self.shards = 0
        self._buffer, self._filled = np.empty(0, np.uint8), 0
        self._waiting: dict[str, Array] = {}
        self._lines: list[bytes] = []
        self._contents: dict[tuple[int, int, int], str] = {}  # names by size, checksum and sum
        self._files: dict[str, Path] = {}  # of names that are written
        self._open: dict[Path, Any] = {}
        self._flushed = monotonic()
        _cleared(folder)
        with writing(folder / HEAD, "captured calls") as file:
            json.dump({"format": FORMAT, "version": VERSION, **head}, file, indent=1)

    def put(self, data: Array) -> str:
        """Returns the name of a content, in uint8, which is stored unless it is there. Raises FullError, OSError."""
        checksum = crc32(data.data)
        key = (len(data), checksum, summed(data))
        known = self._contents.get(key)
        if known is not None and np.array_equal(self.stored(known), data):
            return known
        name = self._contents[key] = self.store(data, checksum)
        return name

    def store(self, data: Array | memoryview, checksum: int) -> str:
        """Stores a content that is not there yet, of this CRC-32; returns its name. Raises FullError, OSError."""
        if self.size_bytes + len(data) > self.max_bytes:
            raise FullError
        name = f"{self.contents}-{checksum:08x}"
        self.contents += 1
        self.size_bytes += len(data)
        if len(data) >= LARGE:
            self._write({name: np.frombuffer(data, np.uint8)})
        else:
            self._wait(name, data)
        return name

    def add(self, record: Record) -> None:
        """Adds a call, all of whose values were put. Raises FullError, OSError."""
        self.add_text(encode(record).encode())

    def add_text(self, text: bytes) -> None:
        """Adds a call by the text of its record. Raises FullError, OSError."""
        line = line_of_text(text)
        if self.size_bytes + len(line) > self.max_bytes:
            raise FullError
        self.size_bytes += len(line)
        self._lines.append(line)
        self.calls += 1
        if monotonic() - self._flushed > EVERY_S:
            self.flush()

    def flush(self) -> None:
        """Writes what waits. Raises OSError."""
        self._flushed = monotonic()
        if self._waiting:
            waiting, self._waiting, self._filled = self._waiting, {}, 0
            self._write(waiting)
        if self._lines:
            lines, self._lines = self._lines, []
            with (self.folder / CALLS).open("ab") as file:
                file.write(b"".join(lines))

    def close(self, places: Mapping[str, Any]) -> None:
        """Writes what waits, and where the calls stood in the step. Raises OSError, TraceError."""
        self.flush()
        with writing(self.folder / PLACES, "captured calls") as file:
            json.dump(places, file)

    def _wait(self, name: str, data: Array | memoryview) -> None:
        if self._filled + len(data) > WAITING:
            self.flush()
        if not len(self._buffer):
            self._buffer = np.empty(WAITING, np.uint8)
        part = self._buffer[self._filled : self._filled + len(data)]
        part[:] = data
        self._waiting[name], self._filled = part, self._filled + len(data)

    def _write(self, contents: dict[str, Array]) -> None:
        path = self.folder / f"values-{self.shards:05}.safetensors"
        partial = path.with_suffix(".part")
        try:
            save_file(contents, partial)
            partial.chmod(0o644)  # safetensors makes a file for its owner alone
            os.replace(partial, path)
        except Exception as error:  # what safetensors makes of a full disk is an error of its own
            partial.unlink(missing_ok=True)
            raise error if isinstance(error, OSError) else OSError(str(error)) from error
        self.shards += 1
        self._files.update(dict.fromkeys(contents, path))

    def stored(self, name: str) -> Array:
        """Returns the bytes of a content that is stored."""
        if name in self._waiting:
            return self._waiting[name]
        path = self._files[name]
        if path not in self._open:
            self._open[path] = safe_open(path, framework="numpy")
        data: Array = self._open[path].get_tensor(name)
        return data


def summed(data: Array) -> int:
    """Returns the sum of the bytes by words of 8, which tells most changes at the speed of memory."""
    whole = len(data) & ~7
    total = int(data[:whole].view(np.int64).sum(dtype=np.int64)) if whole else 0
    return total ^ int.from_bytes(data[whole:].tobytes(), "little")


def _cleared(folder: Path) -> None:
    """Makes the folder, or empties it of an older capture. Raises TraceError."""
    try:
        if folder.is_dir() and any(folder.iterdir()) and not (folder / HEAD).is_file():
            raise TraceError(f"{folder} is not empty and holds no captured calls; choose another name.")
        folder.mkdir(parents=True, exist_ok=True)
        for file in folder.iterdir():
            if file.name in (CALLS, PLACES) or SHARD.fullmatch(file.name) or file.suffix == ".part":
                file.unlink()
    except (OSError, ValueError) as error:  # ValueError: a name with a zero byte
        raise TraceError(f"Cannot write captured calls to {folder}: {why_not(folder, error)}") from error
