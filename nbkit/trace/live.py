"""Writes frames of a trace while it is recorded: as parts of Parquet files, so that an end by force costs the last."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from nbkit.errors import TraceError
from nbkit.schema import SCHEMA_VERSION
from nbkit.trace.atomic_write import why_not
from nbkit.trace.storage import META, read, write_frame

NAME = "running"


class LiveTrace:
    """A folder that can be loaded as a trace at any time: NAME.parquet of each frame is a folder of its parts.

    Raises TraceError where it cannot be written; that of a run before is left as it is.
    """

    def __init__(self, parent: Path, frames: tuple[str, ...], meta: Mapping[str, Any]) -> None:
        self.parts = dict.fromkeys(frames, 0)
        try:
            self.path = _new_folder(parent)
            for name in frames:
                (self.path / f"{name}.parquet").mkdir()
            told = {"schema_version": SCHEMA_VERSION, "frames": list(frames), **meta, "complete": False}
            (self.path / META).write_text(json.dumps(told, indent=1, default=str), encoding="utf-8")
        except OSError as error:
            raise TraceError(f"Cannot save the trace to {parent}: {why_not(parent, error)}") from error

    def write(self, name: str, frame: pd.DataFrame) -> None:
        """Adds rows to a frame. Raises TraceError where the disk does not take them."""
        folder, number = self.path / f"{name}.parquet", self.parts[name]
        try:
            write_frame(folder / ".part", name, frame)
            (folder / ".part").rename(folder / f"part-{number:06d}.parquet")
        except (OSError, pa.ArrowException) as error:
            raise TraceError(f"Cannot write to {folder}: {why_not(folder, error)}") from error
        self.parts[name] = number + 1

    def frame(self, name: str) -> pd.DataFrame:
        """Returns what was written of a frame."""
        return read(self.path)[0][name]

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)


def _new_folder(parent: Path) -> Path:
    parent.mkdir(parents=True, exist_ok=True)
    number = 1
    while (path := parent / (NAME if number == 1 else f"{NAME}-{number}")).exists():
        number += 1
    path.mkdir()
    return path
