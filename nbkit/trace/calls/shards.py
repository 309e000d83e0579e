"""Holds the contents of captured calls: in blocks of memory first, and in safetensors files once these are written."""

import mmap
import os
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from operator import attrgetter
from pathlib import Path
from zlib import crc32

import numpy as np

# Contents wait together for a file of this size, which the nearest caches hold; larger ones have files of their own.
BLOCK = 4 * 2**20
# As many at most.
MOST_CONTENTS = 2**15
# So many files are open at once where contents are read again.
MOST_OPEN = 64

# Writes contents that follow each other in a block as a safetensors file: path, number of the first, block, where each
# ends. Returns the length of what the file begins with. Raises OSError.
WriteContents = Callable[[Path, int, memoryview, Sequence[int]], int]


def write_contents(path: Path, first: int, block: memoryview, ends: Sequence[int]) -> int:
    """Writes a file of contents, whole or not at all: WriteContents, which the library does without Python's lock."""
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


class Shard:
    """Holds the contents of one file, whose numbers follow each other from `first` on.

    The library fills it, too, by its memory: `block`, `ends` (where each content ends), and `filled` (how many there
    are, their bytes, and how many bytes there may be).
    """

    def __init__(self, path: Path, first: int, block: memoryview, room: int) -> None:
        self.path, self.first = path, first
        self.ends = np.empty(MOST_CONTENTS, np.int64)
        self.filled = array("q", (0, 0, min(len(block), room)))
        self.block: memoryview | None = block  # until it is written
        self._head_bytes = 0

    def add(self, data: memoryview) -> int | None:
        """Adds a content; returns its number, None where it does not fit."""
        count, start, limit = self.filled
        if self.block is None or start + len(data) > limit or count == len(self.ends):
            return None
        self.block[start : start + len(data)] = data
        self.ends[count] = start + len(data)
        self.filled[:2] = array("q", (count + 1, start + len(data)))
        return self.first + count

    def close(self) -> None:
        """Takes nothing any more."""
        self.filled[2] = 0
        self.ends = self.ends[: self.filled[0]].copy()

    def place(self, number: int) -> slice:
        """Returns where a content lies."""
        place = number - self.first
        return slice(int(self.ends[place - 1]) if place else 0, int(self.ends[place]))

    def contents(self) -> memoryview:
        """Returns the contents in the file, which is written."""
        with self.path.open("rb") as file:
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))[self._head_bytes :]

    def write(self, write: WriteContents) -> memoryview:
        """Writes the file, whole or not at all; returns the block, which is free then. Raises OSError."""
        block = self.block
        assert block is not None
        self._head_bytes = write(self.path, self.first, block, self.ends.tolist())
        self.block = None
        return block


class Shards:
    """Holds the contents of a folder by their numbers."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.filling: Shard | None = None
        self._shards: list[Shard] = []
        self._closed_bytes = 0
        self._free: list[memoryview] = []
        self._opened = lru_cache(MOST_OPEN)(Shard.contents)

    def __iter__(self) -> Iterator[Shard]:
        return iter(self._shards)

    def __len__(self) -> int:
        """Returns the number of files."""
        return len(self._shards)

    @property
    def size_bytes(self) -> int:
        """Returns the bytes of all contents."""
        return self._closed_bytes + (0 if self.filling is None else self.filling.filled[1])

    def add(self, data: memoryview, room: int) -> int | None:
        """Stores a content where all may take `room` bytes; returns its number, None where what has been filled is to
        be written first.
        """
        if self.filling is None:
            last = self._shards[-1] if self._shards else None
            first = 0 if last is None else last.first + last.filled[0]
            path = self.folder / f"values-{len(self._shards):05}.safetensors"
            self.filling = Shard(path, first, self._block(len(data)), room)
            self._shards.append(self.filling)
        return self.filling.add(data)

    def limit(self, room: int) -> None:
        """Says that `room` bytes are left."""
        if (shard := self.filling) is not None:
            shard.filled[2] = min(shard.filled[2], shard.filled[1] + room)

    def read(self, number: int) -> memoryview:
        """Returns the bytes of a content."""
        shard = self._shards[bisect_right(self._shards, number, key=attrgetter("first")) - 1]
        block = shard.block  # a thread may write it, and take it away, at any time
        return (self._opened(shard) if block is None else block)[shard.place(number)]

    def take(self) -> Shard | None:
        """Returns what has been filled and is to be written; the next content begins another one."""
        filled, self.filling = self.filling, None
        if filled is not None:
            filled.close()
            self._closed_bytes += filled.filled[1]
        return filled

    def give_back(self, block: memoryview) -> None:
        """Takes a block that has been written; memory that was used before is filled twice as fast."""
        if len(block) == BLOCK:
            self._free.append(block)

    def _block(self, size: int) -> memoryview:
        if size <= BLOCK and self._free:
            return self._free.pop()
        return np.empty(max(size, BLOCK), np.uint8).data


def shard_head(first: int, ends: Sequence[int], checksums: Sequence[int]) -> bytes:
    """Returns what a safetensors file of contents begins with; each is named NUMBER-CRC32."""
    entries = [
        f'"{number}-{checksum:08x}":{{"dtype":"U8","shape":[{end - start}],"data_offsets":[{start},{end}]}}'
        for number, (start, end, checksum) in enumerate(zip((0, *ends), ends, checksums, strict=False), first)
    ]
    head = f"{{{','.join(entries)}}}".encode()
    return len(head).to_bytes(8, "little") + head
