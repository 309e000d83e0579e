"""Stores a trace on disk: a folder with one Parquet file per frame and meta.json, written whole or not at all."""

import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from nbkit import units
from nbkit.compat.text_dtype import arrow_schema
from nbkit.errors import SchemaError, TraceError, check_version, first_line
from nbkit.schema import SCHEMA_VERSION, TABLES
from nbkit.trace.atomic_write import why_not
from nbkit.trace.captured_folder import read_captured, write_captured
from nbkit.trace.captured_values import CapturedCall

META = "meta.json"
MOST_TRACES = 12  # of a folder, taken together
ROW_GROUP = 131_072  # rows that a query reads or passes over together
SEARCHED = ("op_id", "start_us", "self_time_us")


def of_this_process(path: Path) -> Path:
    """Returns the folder that this process may write: rank=N in `path` where it is one of several, which all write."""
    distributed = sys.modules.get("torch.distributed")
    rank, ranks = os.environ.get("RANK"), os.environ.get("WORLD_SIZE", "1")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        rank, ranks = str(distributed.get_rank()), str(distributed.get_world_size())
    is_told = any(part.startswith("rank=") for part in path.parts)
    return path / f"rank={rank}" if rank and ranks != "1" and not is_told else path


def write(
    path: Path, frames: dict[str, pd.DataFrame], meta: dict[str, Any], captured: Mapping[int, CapturedCall] = {}
) -> Path:
    """Writes the folder beside `path` under a temporary name and renames it; raises TraceError, SchemaError."""
    path = of_this_process(path)
    with replacing(path) as partial:
        for name, frame in frames.items():
            write_frame(partial / f"{name}.parquet", name, frame)
        if captured:
            write_captured(partial, captured, frames["ops"], meta)
        write_meta(partial, list(frames), meta)
    return path


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yields a folder beside `path` that takes its place at the end, and is removed if an error ends the block.

    Raises TraceError if it cannot be written, or if something else than a trace is at `path`.
    """
    partial: Path | None = None
    try:
        _check_replaceable(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
        # mkdtemp makes a folder for its owner alone; a trace is shared like any other file.
        partial.chmod(0o777 & ~_umask())
        yield partial
        _replace(partial, path)
    except (OSError, ValueError, pa.ArrowException) as error:  # ValueError: a name with a zero byte
        raise TraceError(f"Cannot save the trace to {path}: {why_not(path, error)}") from error
    finally:
        if partial is not None and partial.exists():
            shutil.rmtree(partial, ignore_errors=True)


def write_meta(folder: Path, names: list[str], meta: dict[str, Any]) -> None:
    """Writes what a trace of these frames says about itself."""
    text = json.dumps({"schema_version": SCHEMA_VERSION, "frames": names, **meta}, indent=1, default=str)
    (folder / META).write_text(text, encoding="utf-8")


def _options(name: str, frame: pd.DataFrame) -> dict[str, Any]:
    """Returns how a frame is written: dictionaries and statistics pay where a query can pass over row groups.

    On smaller frames they cost a quarter of the time and save nothing.
    """
    if len(frame) <= ROW_GROUP:
        return {"use_dictionary": False, "write_statistics": False}
    columns = TABLES[name].columns
    return {
        "use_dictionary": [column.name for column in columns if column.dtype == "str"],
        "write_statistics": [column.name for column in columns if column.name in SEARCHED],
        "row_group_size": ROW_GROUP,
    }


def write_frame(file: Path, name: str, frame: pd.DataFrame) -> None:
    """Writes a frame of the schema to one Parquet file."""
    pq.write_table(arrow_table(name, frame), file, **_options(name, frame))


def read(path: Path) -> tuple[dict[str, pd.DataFrame], dict[str, Any], dict[int, CapturedCall]]:
    """Returns frames, meta and captured calls of the folder at `path`; raises TraceError."""
    if not path.exists():
        raise TraceError(f"There is no {path}; give the folder that Trace.save() wrote.")
    if below := traces_in(path):
        listed = ", ".join(one.name for one in below)
        advice = f"give one of them, such as {below[0]}" if len(below) > 1 else f"give that: {below[0]}"
        raise TraceError(f"{path} is a folder of {units.counted(len(below), 'trace')} ({listed}); {advice}.")
    if not (path / META).is_file():
        raise TraceError(f"{path} is not a trace: it has no {META}; give the folder that Trace.save() wrote.")
    try:
        version, names, meta = read_meta(path)
        check_version(path, version, SCHEMA_VERSION)
        return {name: _read_frame(path, name) for name in names}, meta, read_captured(path)
    except (OSError, ValueError, LookupError, TypeError, AttributeError, pa.ArrowException, SchemaError) as error:
        raise TraceError(f"{path} is damaged: {_reason(error)}; record or copy it again.") from error


def traces_in(folder: Path) -> list[Path]:
    """Returns the traces right below a folder that is none itself, as `audit -o` writes it: audit, then its steps.

    Raises TraceError if there are too many to be meant together.
    """
    if not folder.is_dir() or (folder / META).is_file():
        return []
    found = [path for path in folder.iterdir() if (path / META).is_file() and not path.name.startswith(".")]
    if len(found) > MOST_TRACES:
        first = sorted(path.name for path in found)[:3]
        raise TraceError(
            f"{folder} holds {len(found)} traces; name up to {MOST_TRACES} of them: {', '.join(first)} ..."
        )
    in_numbers = {path: re.sub(r"\d+", lambda digits: digits[0].zfill(20), path.name) for path in found}
    return sorted(found, key=lambda path: (path.name != "audit", in_numbers[path]))


def read_meta(path: Path) -> tuple[int, list[str], dict[str, Any]]:
    """Returns schema version, names of frames, and the rest of meta.json; raises ValueError if it is no such file."""
    try:
        meta = json.loads((path / META).read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{META} is no JSON ({error})") from error
    if not isinstance(meta, dict):
        raise ValueError(f"{META} is a {type(meta).__name__}, not an object")
    version, names = meta.pop("schema_version", None), meta.pop("frames", None)
    if not isinstance(version, int) or not isinstance(names, list):
        raise ValueError(f"{META} has no schema version or no list of frames")
    return version, names, meta


def _read_frame(path: Path, name: str) -> pd.DataFrame:
    """Returns a frame with the dtypes of its table; raises TraceError, or SchemaError if it has other columns."""
    if name not in TABLES:
        raise TraceError(f"{path} holds a frame {name!r} that this nbkit does not know; upgrade nbkit-torch.")
    file = path / f"{name}.parquet"
    if not file.exists():
        raise TraceError(f"{path} is damaged: {file.name} is missing; record or copy it again.")
    # A folder holds the parts of a trace that was not ended.
    parts = sorted(file.glob("part-*.parquet")) if file.is_dir() else [file]
    if not parts:
        return TABLES[name].frame()
    frame: pd.DataFrame = pa.concat_tables([pq.ParquetFile(part).read() for part in parts]).to_pandas()
    # Parquet knows no nullable pandas dtypes by itself: files of other writers come back as float or object.
    return TABLES[name].check(frame.astype({c.name: c.pandas_dtype for c in TABLES[name].columns if c.name in frame}))


def arrow_table(name: str, frame: pd.DataFrame) -> pa.Table:
    """Returns what pa.Table.from_pandas returns, in half the time: that works the schema out anew for every frame.

    Raises SchemaError for a frame that was changed since it was recorded and does not fit its table any more.
    """
    frame = TABLES[name].check(frame)
    columns = [pa.array(values.values, from_pandas=True) for _, values in frame.items()]
    return pa.Table.from_arrays(columns, schema=frame_schema(name))


@cache
def frame_schema(name: str) -> pa.Schema:
    """Returns Arrow types of a table's columns, and how pandas reads them back."""
    return arrow_schema(TABLES[name].frame())


def _replace(partial: Path, path: Path) -> None:
    """Puts the finished folder in place; the old one, if any, is set aside first and removed last."""
    if not path.exists():
        partial.rename(path)
        return
    aside = Path(tempfile.mkdtemp(prefix=f".{path.name}.old.", dir=path.parent))
    old = aside / path.name
    try:
        path.rename(old)
        partial.rename(path)
    except BaseException:  # an interrupt too must not cost the trace that was there
        if old.exists() and not path.exists():
            old.rename(path)
        raise
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _check_replaceable(path: Path) -> None:
    """Raises TraceError if something else than a trace is at `path`."""
    if path.exists() and not (path / META).is_file():
        raise TraceError(f"{path} exists and is not a trace; choose another name, so that nothing of yours is lost.")
    if path.name.startswith("rank=") and (path.parent / META).is_file():
        raise TraceError(f"{path.parent} is a trace of one process; choose another name for those of several.")


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _reason(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror[0].lower() + error.strerror[1:]
    return first_line(error).rstrip(".")


def check_save_path(path: Path) -> None:
    """Raises TraceError unless a trace can be written to `path` now; asked before anything runs."""
    path = of_this_process(path)
    try:
        _check_replaceable(path)
        folder = next(parent for parent in path.parents if parent.exists())
        # Only an attempt tells: permission bits say nothing for root or on a read-only file system.
        Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=folder)).rmdir()
    except OSError as error:
        reason = why_not(path, error, "choose a place you can write to")
        raise TraceError(f"Cannot save a trace to {path}: {reason}") from error
