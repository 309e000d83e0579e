"""Finds which rank each Chrome trace of a folder is of."""

import gzip
import re
import zlib
from collections.abc import Sequence
from pathlib import Path

# As Kineto writes it before the events; a rank in a name may be one of several numbers there.
TOLD = re.compile(rb'"distributedInfo"\s*:\s*\{[^{}]*?"rank"\s*:\s*(\d{1,9})\b')
NAMED = re.compile(r"(?<![a-z])rank[-_=. ]?(\d{1,9})(?!\d)", re.IGNORECASE)
HEAD = 1 << 16


def chrome_traces(folder: Path) -> list[Path]:
    """Returns the files of a folder that may be Chrome traces."""
    found = (file for pattern in ("*.json", "*.json.gz") for file in folder.glob(pattern))
    return sorted(file for file in found if file.is_file())


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
