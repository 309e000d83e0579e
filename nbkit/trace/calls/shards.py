"""Holds the contents of captured calls: in blocks of memory first, and in safetensors files once these are written."""

import mmap
import sys
from array import array
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np

from nbkit.trace.calls.file_writer import Contents

# Contents wait together for a file of this size, which the nearest caches hold; larger ones have files of their own.
BLOCK = 4 * 2**20
# As many at most.
MOST_CONTENTS = 2**15
# So many files are open at once where contents are read again.
MOST_OPEN = 64
# Memory whose contents are written is kept for others, up to this size of all of it.
MOST_FREE = 32 * 2**20
# It is at most so many times as large as what it is then for.
MOST_SPARE = 2
# As much of it waits for the next recording when one has ended: the system clears what it gives, which takes a while.
MOST_KEPT = 2 * BLOCK
_kept: list[list[Any]] = []


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

    def to_write(self) -> Contents:
        """Returns what is to be written."""
        assert self.block is not None
        return self.path, self.first, self.block, self.ends

    def written(self, head_bytes: int) -> memoryview:
        """Notes that the file is written; returns the block, which is free then."""
        block = self.block
        assert block is not None
        self._head_bytes, self.block = head_bytes, None
        return block


class Shards:
    """Holds the contents of a folder by their numbers."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.filling: Shard | None = None
        self._shards: list[Shard] = []
        self._closed_bytes = 0
        self._free: list[Any] = []  # memory, the oldest first
        with suppress(IndexError):
            self._free = _kept.pop()
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
        return (self._opened(shard) if shard.block is None else shard.block)[shard.place(number)]

    def take(self) -> Shard | None:
        """Returns what has been filled and is to be written; the next content begins another one."""
        filled, self.filling = self.filling, None
        if filled is not None:
            filled.close()
            self._closed_bytes += filled.filled[1]
        return filled

    def give_back(self, block: memoryview) -> None:
        """Takes a block that has been written; memory that was used before is filled faster."""
        self._free.append(block.obj)
        while sum(map(len, self._free)) > MOST_FREE:
            del self._free[0]

    def close(self) -> None:
        """Leaves memory to the next recording; all is written."""
        self._free.sort(key=len)
        while sum(map(len, self._free)) > MOST_KEPT:
            self._free.pop()
        _kept[:] = [self._free]
        self._free = []

    def _block(self, size: int) -> memoryview:
        size = max(size, BLOCK)
        fitting = [memory for memory in self._free if size <= len(memory) <= MOST_SPARE * size]
        if not fitting:
            return memoryview(_memory(size))[:size]
        memory = min(fitting, key=len)
        self._free = [one for one in self._free if one is not memory]
        return memoryview(memory)[:size]


def _memory(size: int) -> Any:
    """Returns fresh memory that no forked process shares.

    Not in large pages: where a system gives free memory back to its host, these are what is fetched from there again.
    """
    if sys.platform == "win32":
        return mmap.mmap(-1, size)
    return mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
