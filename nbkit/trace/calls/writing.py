"""Writes captured calls into a folder while the step runs: values first, then the records that name them."""

import os
from bisect import bisect_right
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from time import monotonic
from typing import Any
from weakref import WeakSet
from zlib import crc32

import numpy as np
import pandas as pd

from nbkit.errors import TraceError
from nbkit.numerics.precision import Array
from nbkit.trace.atomic_write import why_not
from nbkit.trace.calls.file_writer import FileWriter, Job, PythonFileWriter, StartFileWriter
from nbkit.trace.calls.layout import (
    CALLS,
    FORMAT,
    HEAD,
    PLACE_COLUMNS,
    PLACES,
    SHARD,
    VERSION,
    Record,
    encode,
    line_of,
)
from nbkit.trace.calls.shards import BLOCK, Shard, Shards

# A process that is killed loses the calls of a second at most; the library hands over its records five times a second.
EVERY_S = 0.8
# As many bytes may wait for the disk; the step waits, too, when it has more.
MOST_WAITING = 48 * 2**20
# Those whose folders are being written.
_writers: WeakSet["CallWriter"] = WeakSet()


class FullError(Exception):
    """Says that a content does not fit in what the folder may take."""


@dataclass
class Submitted:
    """Holds what the thread has to write: the contents of a shard, if any, and how many calls."""

    job: Job
    shard: Shard | None
    calls: int

    @property
    def size_bytes(self) -> int:
        return 0 if self.shard is None else self.shard.filled[1]


class CallWriter:
    """Writes one folder of at most `max_bytes`, beside the step; after a crash at any time it holds whole calls only.

    `start` makes what writes its files. Raises TraceError if the folder holds something else or cannot be written to.
    """

    def __init__(
        self, folder: Path, head: Mapping[str, Any], max_bytes: int, start: StartFileWriter = PythonFileWriter
    ) -> None:
        self.max_bytes, self.start = max_bytes, start
        self.written_calls = 0  # that are on the disk
        self._lines: list[bytes] = []  # of calls that wait: one or more in each
        self._waiting_calls = 0
        self._lines_bytes = 0  # of all calls
        self._contents: dict[tuple[int, int], list[int]] = {}  # numbers by size and checksum
        self._flushed = monotonic()
        self._process = os.getpid()
        self._thread: FileWriter | None = None
        self._waiting: deque[Submitted] = deque()
        self._error: OSError | None = None
        _cleared(folder)
        self.folder = folder.absolute()  # the step may go elsewhere
        self.shards = Shards(self.folder)
        _writers.add(self)
        self._save(HEAD, encode({"format": FORMAT, "version": VERSION, **head}))

    @property
    def size_bytes(self) -> int:
        """Returns the bytes of contents and calls."""
        return self.shards.size_bytes + self._lines_bytes

    @property
    def is_nearly_full(self) -> bool:
        """Returns whether what waits in the library may be more than fits."""
        return self.max_bytes - self.size_bytes < BLOCK

    def put(self, data: Array) -> str:
        """Returns the name of a content, in uint8, which is stored unless it is there. Raises FullError, OSError."""
        alike = self._contents.setdefault((len(data), crc32(data.data)), [])
        for number in alike:
            if np.array_equal(self.stored(number), data):
                return str(number)
        alike.append(self.store(data.data))
        return str(alike[-1])

    def store(self, data: memoryview) -> int:
        """Stores a content that is not there yet; returns its number. Raises FullError, OSError."""
        room = self._room(len(data))
        while (number := self.shards.add(data, room)) is None:
            self.flush()
        return number

    def stored(self, number: int) -> memoryview:
        """Returns the bytes of a content that is stored."""
        return self.shards.read(number)

    def _room(self, needed: int) -> int:
        """Returns how many bytes are left. Raises FullError if more are needed."""
        room = self.max_bytes - self.size_bytes
        if needed > room:
            raise FullError
        return room

    def add(self, record: Record) -> None:
        """Adds a call, all of whose values were put. Raises FullError."""
        line = line_of(record)
        if not self.add_lines(line, (len(line),)):
            raise FullError

    def add_lines(self, lines: bytes, ends: Sequence[int]) -> int:
        """Adds the lines of calls, all of whose values were put; `ends` says where each ends. Returns how many fit."""
        room = self.max_bytes - self.size_bytes
        count = bisect_right(ends, room)
        if count:
            size = ends[count - 1]
            self._lines.append(lines[:size])
            self._waiting_calls += count
            self._lines_bytes += size
            if room < size + BLOCK:
                self.shards.limit(room - size)
        return count

    def flush_once_in_a_while(self) -> None:
        """Does flush() if the last one is a while ago. Raises OSError of what was written before."""
        if monotonic() - self._flushed > EVERY_S:
            self.flush()

    def flush(self) -> None:
        """Has the thread write what waits. Raises OSError of what it wrote before."""
        self._flushed = monotonic()
        shard, lines, count = self.shards.take(), self._lines, self._waiting_calls
        self._lines, self._waiting_calls = [], 0
        if os.getpid() != self._process:  # forked, as workers that load data are: the folder is not theirs
            return
        if shard is not None or lines:
            self._thread = self._thread or self.start()
            job = self._thread.submit(None if shard is None else shard.to_write(), self.folder / CALLS, lines)
            self._waiting.append(Submitted(job, shard, count))
        while self._waiting and (self._waiting[0].job.done() or self._waiting_bytes > MOST_WAITING):
            self._end(self._waiting.popleft())
        if self._error is not None:
            raise self._error

    @property
    def _waiting_bytes(self) -> int:
        return sum(one.size_bytes for one in self._waiting)

    def _end(self, one: Submitted) -> None:
        """Waits until it is written; nothing is any more after an error, which is told where the step goes on."""
        try:
            head_bytes = one.job.result()
        except OSError as error:
            self._error = error
            return
        if one.shard is not None:
            self.shards.give_back(one.shard.written(head_bytes))
        self.written_calls += one.calls

    def finish(self) -> None:
        """Writes what waits. Raises OSError."""
        _writers.discard(self)
        try:
            self.flush()
        finally:
            if self._thread is not None and os.getpid() == self._process:
                self._thread.shutdown()
                while self._waiting:
                    self._end(self._waiting.popleft())
                self.shards.close()
        if self._error is not None:
            raise self._error

    def close(self, places: str) -> None:
        """Writes where the calls in the folder stood in the step, in JSON; a reader does without. Raises TraceError."""
        self._save(PLACES, places)

    def _save(self, name: str, text: str) -> None:
        try:
            (self.folder / name).write_bytes(text.encode())
        except OSError as error:
            raise TraceError(f"Cannot write captured calls to {self.folder}: {why_not(self.folder, error)}") from error


def places_text(rows: pd.DataFrame) -> str:
    """Returns where calls stood in the step as JSON for CallWriter.close(); `rows` has columns of `ops`."""
    known = rows[list(PLACE_COLUMNS)].astype(object)
    return encode(known.where(known.notna(), None).to_dict("list"))


def set_aside(folder: Path) -> Path | None:
    """Renames a folder with captured calls to NAME-1, NAME-2, ..., the first that is free, and makes it anew.

    Returns the new name; null where no captured calls were there, and nothing is changed. Raises TraceError.
    """
    try:
        if not (folder / HEAD).is_file():
            return None
        _check_unused(folder)
        path = folder.resolve()  # a link stays one
        aside = next(name for number in count(1) if not (name := path.with_name(f"{path.name}-{number}")).exists())
        path.rename(aside)
        path.mkdir()
    except (OSError, ValueError) as error:
        raise TraceError(f"Cannot set aside the captured calls in {folder}: {why_not(folder, error)}") from error
    return aside


def _check_unused(folder: Path) -> None:
    if any(folder.samefile(writer.folder) for writer in _writers if writer.folder.exists()):
        raise TraceError(f"Another opcapture is writing {folder}; choose another name.")


def _cleared(folder: Path) -> None:
    """Makes the folder, or empties it of an older capture. Raises TraceError."""
    try:
        with suppress(FileExistsError):
            folder.mkdir(parents=True)
            return
        _check_unused(folder)
        if folder.is_dir() and any(folder.iterdir()) and not (folder / HEAD).is_file():
            raise TraceError(f"{folder} is not empty and holds no captured calls; choose another name.")
        for file in folder.iterdir():
            if file.name in (CALLS, PLACES) or SHARD.fullmatch(file.name) or file.suffix == ".part":
                file.unlink()
        (folder / HEAD).unlink(missing_ok=True)  # last: without it nobody knows what the rest is
    except (OSError, ValueError) as error:  # ValueError: a name with a zero byte
        raise TraceError(f"Cannot write captured calls to {folder}: {why_not(folder, error)}") from error
