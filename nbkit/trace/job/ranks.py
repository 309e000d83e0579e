"""Reads what is known of each rank of a job without its rows: meta.json, and the footers of its Parquet files."""

import re
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from nbkit import units
from nbkit.errors import first_line
from nbkit.schema import RANKS, SCHEMA_VERSION, TABLES
from nbkit.trace.storage import META, read_meta

FOLDER = re.compile(r"rank=(0|[1-9]\d{0,8})")
READ, MISSING, DAMAGED, VERSION = "read", "missing", "damaged", "version"
THREADS = 8  # which wait for a file system
MOST_NAMED = 8
MOST_RANKS = 1_000_000  # a world_size beyond that is no number of ranks


@dataclass(frozen=True)
class Rank:
    """Holds what is known of a rank: `rows` by the frames that can be read, and in `problems` why others cannot."""

    rank: int
    path: Path
    state: str = READ
    meta: Mapping[str, Any] = field(default_factory=dict)
    rows: Mapping[str, int] = field(default_factory=dict)
    problems: Sequence[str] = ()


def rank_folders(folder: Path) -> dict[int, Path]:
    """Returns the folders `rank=N` below a folder by N; none if it is a trace itself, or none of them is one."""
    if not folder.is_dir() or (folder / META).is_file():
        return {}
    matches = [(FOLDER.fullmatch(path.name), path) for path in folder.iterdir()]
    found = {int(match[1]): path for match, path in matches if match is not None and path.is_dir()}
    return dict(sorted(found.items())) if any((path / META).is_file() for path in found.values()) else {}


def read_ranks(folders: Mapping[int, Path]) -> list[Rank]:
    """Returns the ranks in order, those that are missing among them as far as one of the others says how many are."""
    with ThreadPoolExecutor(THREADS) as pool:
        known = list(pool.map(_read, folders, folders.values()))
    world = max((size for one in known if (size := world_size(one)) is not None), default=0)
    missing = [Rank(rank, next(iter(folders.values())).parent, MISSING) for rank in range(world) if rank not in folders]
    return sorted([*known, *missing], key=lambda one: one.rank)


def world_size(rank: Rank) -> int | None:
    """Returns how many ranks a rank says that there are; null if it says nothing that could be so."""
    size = rank.meta.get("world_size")
    return size if isinstance(size, int) and 0 < size <= MOST_RANKS else None


def _read(rank: int, path: Path) -> Rank:
    if not (path / META).is_file():
        return Rank(rank, path, DAMAGED, problems=(f"it has no {META}",))
    try:
        version, names, meta = read_meta(path)
    except (OSError, ValueError) as error:
        return Rank(rank, path, DAMAGED, problems=(first_line(error).rstrip("."),))
    if version != SCHEMA_VERSION:
        problem = f"it has schema version {version}, and this nbkit reads {SCHEMA_VERSION}"
        return Rank(rank, path, VERSION, meta, problems=(problem,))
    rows, problems = dict[str, int](), list[str]()
    for name in map(str, names):
        try:
            rows[name] = _rows(path, name)
        except (OSError, ValueError, pa.ArrowException) as error:
            problems.append(f"{name}.parquet: {_reason(error)}")
    return Rank(rank, path, DAMAGED if problems else READ, meta, rows, tuple(problems))


def _rows(path: Path, name: str) -> int:
    """Returns how many rows a frame has by its file's footer. Raises ValueError if it has other columns."""
    if name not in TABLES:
        raise ValueError("this nbkit knows no such frame")
    footer = pq.read_metadata(path / f"{name}.parquet")
    if footer.schema.names != TABLES[name].names:
        raise ValueError("it has other columns")
    return int(footer.num_rows)


def _reason(error: Exception) -> str:
    if isinstance(error, FileNotFoundError):
        return "it is not there"
    return "it is no whole Parquet file" if isinstance(error, pa.ArrowException) else first_line(error).rstrip(".")


def ranks_frame(ranks: Iterable[Rank]) -> pd.DataFrame:
    """Returns the frame of RANKS."""
    return RANKS.frame([_row(one) for one in ranks])


def _row(one: Rank) -> dict[str, Any]:
    meta, started = one.meta, one.meta.get("started_ns")
    return {
        "rank": one.rank,
        "state": one.state,
        "verb": _text(meta.get("verb")),
        "host": _text(meta.get("host")),
        "world_size": world_size(one),
        "complete": meta.get("complete") is True,
        "error": "; ".join(one.problems) or error_text(meta.get("error")),
        "rows": one.rows.get("ops"),
        "wall_us": float(meta["wall_us"]) if isinstance(meta.get("wall_us"), int | float) else None,
        "started_ns": started if isinstance(started, int) else None,
        "clock_offset_us": meta.get("clock_offset_us"),
        "clock_error_us": meta.get("clock_error_us"),
    }


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def error_text(error: object) -> str | None:
    """Returns what ended a recording in words; null where nothing did."""
    if isinstance(error, Mapping):
        lines = str(error.get("message") or "").strip().splitlines()
        return f"{error.get('type', 'error')}: {lines[0]}" if lines else str(error.get("type", "error"))
    return None if not error else str(error)


def left_out_note(ranks: Sequence[Rank]) -> str | None:
    """Returns one note on all that is not there of a job; null where all is."""
    missing = [one.rank for one in ranks if one.state == MISSING]
    parts = [f"{named(missing)} of {len(ranks)} {'is' if len(missing) == 1 else 'are'} missing"] if missing else []
    reasons = dict[str, list[int]]()
    for one in ranks:
        for problem in one.problems:
            reasons.setdefault(problem, []).append(one.rank)
    parts += [f"of {named(of)} not all is read ({problem})" for problem, of in list(reasons.items())[:MOST_NAMED]]
    if more := len(reasons) - MOST_NAMED:
        parts += [f"{units.counted(more, 'further problem')} in trace.ranks"] if more > 0 else []
    empty = [one.rank for one in ranks if one.state == READ and not one.rows.get("ops")]
    parts += [f"{named(empty)} {'has' if len(empty) == 1 else 'have'} no ops"] if empty else []
    text = "; ".join(parts)
    return f"{text[0].upper()}{text[1:]}." if text else None


def named(ranks: Sequence[int]) -> str:
    """Returns 'rank 3', or 'ranks 3, 5 and 7'; of many the first ones."""
    if len(ranks) == 1:
        return f"rank {ranks[0]}"
    shown = [f"{rank}" for rank in ranks[:MOST_NAMED]]
    if len(ranks) > MOST_NAMED:
        return f"ranks {', '.join(shown)}{units.and_more(len(ranks) - MOST_NAMED)}"
    return f"ranks {', '.join(shown[:-1])} and {shown[-1]}"
