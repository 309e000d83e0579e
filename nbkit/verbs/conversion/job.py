"""Opens a folder of Chrome traces, one per rank, as a job: by way of a folder in the cache, which is made once."""

import json
import shutil
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

from nbkit import units
from nbkit.capture.cache_folder import cache_folder
from nbkit.errors import NbkitError, first_line
from nbkit.progress import Progress
from nbkit.readers.chrome.stored.convert import convert_file
from nbkit.schema import SCHEMA_VERSION
from nbkit.trace.atomic_write import writing
from nbkit.trace.job.job import Job
from nbkit.trace.storage import META

STAMPS = "files.json"  # beside the converted ranks: which files they were made of


def converted_job(folder: Path, files: Mapping[int, Path]) -> Job:
    """Returns the job of Chrome traces, which are converted once, into the user's cache folder."""
    name = sha256(str(folder.resolve()).encode()).hexdigest()[:16]
    converted = cache_folder() / "ranks" / name
    failed = _converted(files, converted)
    job = Job(converted)
    note = f"Read from Chrome traces, which are converted once, to {converted}."
    lost = [f"{file.name} could not be read: {why}" for file, why in failed.items()]
    return job.copy_with(
        job.frames, {**job.meta, "name": folder.resolve().name, "notes": [note, *lost, *job.meta["notes"]]}
    )


def _converted(files: Mapping[int, Path], folder: Path) -> dict[Path, str]:
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
                    convert_file(file, place)
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
