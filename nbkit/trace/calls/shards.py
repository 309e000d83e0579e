"""Holds the contents of captured calls: in blocks of memory first, and in safetensors files once these are written."""

import mmap
import os
from array import array
from collections.abc import Callable, Sequence
from pathlib import Path
from zlib import crc32

import numpy as np

# Contents wait together for a file of this size; larger ones have files of their own.
BLOCK = 16 * 2**20

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
    """Holds the contents of one file, whose numbers follow each other from `first` on."""

    def __init__(self, path: Path, first: int, block: memoryview) -> None:
        self.path, self.first = path, first
        self.ends = array("q")
        self.size_bytes = 0
        self._block: memoryview | None = block  # until it is written
        self._contents = memoryview(b"")  # in the file
        self._head_bytes = 0

    def add(self, data: memoryview) -> bool:
        """Adds a content; returns False where it does not fit."""
        start, end = self.size_bytes, self.size_bytes + len(data)
        block = self._block
        if block is None or end > len(block):
            return False
        block[start:end] = data
        self.ends.append(end)
        self.size_bytes = end
        return True

    def read(self, number: int) -> memoryview:
        """Returns the bytes of a content."""
        place = number - self.first
        start, end = self.ends[place - 1] if place else 0, self.ends[place]
        if (block := self._block) is not None:  # a thread may write it, and take it away, at any time
            return block[start:end]
        if not self._contents:
            with self.path.open("rb") as file:
                mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            self._contents = memoryview(mapped)[self._head_bytes :]
        return self._contents[start:end]

    def write(self, write: WriteContents) -> memoryview:
        """Writes the file, whole or not at all; returns the block, which is free then. Raises OSError."""
        block = self._block
        assert block is not None
        self._head_bytes = write(self.path, self.first, block, self.ends)
        self._block = None
        return block


class Shards:
    """Holds the contents of a folder by their numbers."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.count = 0
        self._filling: Shard | None = None
        self._shards: list[Shard] = []  # of each content
        self._free: list[memoryview] = []

    def add(self, data: memoryview) -> int | None:
        """Stores a content; returns its number, None where what has been filled is to be written first."""
        shard, number = self._filling, len(self._shards)
        if shard is None:
            path = self.folder / f"values-{self.count:05}.safetensors"
            shard = self._filling = Shard(path, number, self._block(len(data)))
            self.count += 1
        if not shard.add(data):
            return None
        self._shards.append(shard)
        return number

    def read(self, number: int) -> memoryview:
        """Returns the bytes of a content."""
        return self._shards[number].read(number)

    def take(self) -> Shard | None:
        """Returns what has been filled and is to be written; the next content begins another one."""
        filled, self._filling = self._filling, None
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
