"""Finds which rank each Chrome trace of a folder is of, and converts them once into the folders of a job."""

import gzip
import json
import re
import shutil
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from nbkit import units
from nbkit.errors import NbkitError, first_line
from nbkit.progress import Progress
from nbkit.readers.chrome.reader import read_chrome_trace
from nbkit.schema import SCHEMA_VERSION
from nbkit.trace.atomic_write import writing
from nbkit.trace.storage import META

# As Kineto writes it before the events; a rank in a name may be one of several numbers there.
TOLD = re.compile(rb'"distributedInfo"\s*:\s*\{[^{}]*?"rank"\s*:\s*(\d{1,9})\b')
NAMED = re.compile(r"(?<![a-z])rank[-_=. ]?(\d{1,9})(?!\d)", re.IGNORECASE)
HEAD = 1 << 16
STAMPS = "files.json"  # beside the converted ranks: which files they were made of


def chrome_traces(folder: Path) -> list[Path]:
    """Returns the files of a folder that may be Chrome traces."""
    return sorted(file for pattern in ("*.json", "*.json.gz") for file in folder.glob(pattern))


def ranks_of_files(files: Sequence[Path]) -> dict[int, Path]:
    """Returns the file of each rank, by its `distributedInfo`, else by `rank3` in the names; none if that is unclear.

    Every file must have a rank, and each another one.
    """
    told = [_told(file) for file in files]
    if None in told:
        told = [int(match[1]) if (match := NAMED.search(file.name)) else None for file in files]
    ranks = {rank: file for rank, file in zip(told, files, strict=True) if rank is not None}
    return dict(sorted(ranks.items())) if len(ranks) == len(files) else {}


def _told(file: Path) -> int | None:
    """Returns the rank that a file says it is of; null if its beginning does not."""
    try:
        with gzip.open(file) if file.name.endswith(".gz") else file.open("rb") as opened:
            match = TOLD.search(opened.read(HEAD))
    except (OSError, EOFError, zlib.error):  # whoever reads all of it says what is wrong
        return None
    return None if match is None else int(match[1])


def convert_ranks(files: Mapping[int, Path], folder: Path) -> dict[Path, str]:
    """Saves the trace of each file as `rank=N` in the folder; returns why some could not be read, by file.

    A rank is converted again where its file has changed since, or another nbkit converted it.
    """
    stamps, failed, done = _stamps(folder), dict[Path, str](), 0
    known = {rank: _stamp(file) for rank, file in files.items()}
    size = sum(file.stat().st_size for file in files.values()) or 1
    _forget(folder, set(files))
    with Progress(lambda: f"converting {units.counted(len(files), 'Chrome trace')}", done=lambda: done / size):
        for rank, file in files.items():
            place = folder / f"rank={rank}"
            if stamps.get(str(rank)) != known[rank] or not (place / META).is_file():
                try:
                    trace = read_chrome_trace(file, "")
                    trace.meta.setdefault("rank", rank)
                    trace.save(place)
                except NbkitError as error:
                    failed[file] = first_line(error)
                    _forget(folder, set(files) - {rank})
                else:
                    stamps[str(rank)] = known[rank]
            done += file.stat().st_size
    with writing(folder / STAMPS, "what was converted") as output:
        output.write(json.dumps({rank: stamp for rank, stamp in stamps.items() if int(rank) in files}))
    return failed


def _stamp(file: Path) -> list[object]:
    """Returns what changes where a file does, or the layout of what is made of it."""
    known = file.stat()
    return [file.name, known.st_size, known.st_mtime_ns, SCHEMA_VERSION]


def _stamps(folder: Path) -> dict[str, object]:
    try:
        read = json.loads((folder / STAMPS).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return read if isinstance(read, dict) else {}


def _forget(folder: Path, kept: set[int]) -> None:
    """Removes converted ranks whose file is gone or cannot be read any more."""
    for place in folder.glob("rank=*"):
        number = place.name.removeprefix("rank=")
        if number.isdecimal() and int(number) not in kept:
            shutil.rmtree(place)
