"""Writes a speedscope file: one profile of nested open and close events per thread and stream.

The format: https://www.speedscope.app/file-format-schema.json
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from nbkit.errors import TraceError
from nbkit.trace.atomic_write import writing
from nbkit.trace.export.tracks import Ints, times_ns, tracks

SCHEMA = "https://www.speedscope.app/file-format-schema.json"


def write_speedscope(ops: pd.DataFrame, meta: Mapping[str, Any], path: str | Path) -> Path:
    """Writes the file, gzipped if its name ends in .gz, and returns its path. Raises as write_chrome_trace does."""
    if not len(ops):
        raise TraceError("This trace has no ops, so there is nothing for speedscope to show; record a step first.")
    placed = tracks(ops)
    start, end = times_ns(ops)
    frame, frames = _frames(ops)
    head = {
        "$schema": SCHEMA,
        "exporter": f"nbkit {meta.get('versions', {}).get('nbkit', '')}".strip(),
        "name": str(meta.get("name") or meta.get("verb") or "trace"),
        "activeProfileIndex": 0,
        "shared": {"frames": frames},
    }
    target = Path(path)
    with writing(target, "the speedscope file") as file:
        file.write(json.dumps(head, ensure_ascii=False)[:-1] + ', "profiles": [')
        for number, (name, group) in enumerate(zip(placed.names, placed.groups, strict=True)):
            rows = np.flatnonzero(placed.number == number)
            title = name if group == "host" else f"{group} {name}"
            file.write(",\n" * (number > 0) + json.dumps(_profile(title, rows, (start, end), frame)))
        file.write("]}\n")
    return target


def _frames(ops: pd.DataFrame) -> tuple[Ints, list[dict[str, Any]]]:
    """Returns per op its frame, and the frames: one per op name and source line."""
    codes, keys = pd.factorize(pd.MultiIndex.from_arrays([ops["op"], ops["source"].fillna("")]))
    frames = []
    for op, source in keys:
        file, _, line = source.rpartition(":")
        location = {"file": file, "line": int(line)} if file and line.isdigit() else {"file": source} if source else {}
        frames.append({"name": op, **location})
    return np.asarray(codes, dtype=np.int64), frames


def _profile(title: str, rows: Ints, times: tuple[Ints, Ints], frame: Ints) -> dict[str, Any]:
    start, end = times
    return {
        "type": "evented",
        "name": title,
        "unit": "microseconds",
        "startValue": int(start[rows].min()) / 1e3,
        "endValue": int(end[rows].max()) / 1e3,
        "events": list(_events(rows, start, end, frame)),
    }


def _events(rows: Ints, start: Ints, end: Ints, frame: Ints) -> Iterator[dict[str, Any]]:
    """Yields opens and closes in order of time; every frame closes before the one around it."""
    stack: list[int] = []
    for row in rows[np.lexsort((-end[rows], start[rows]))].tolist():
        while stack and end[stack[-1]] <= start[row]:
            yield _event("C", stack.pop(), end, frame)
        stack.append(row)
        yield _event("O", row, start, frame)
    while stack:
        yield _event("C", stack.pop(), end, frame)


def _event(kind: str, row: int, times: Ints, frame: Ints) -> dict[str, Any]:
    return {"type": kind, "at": int(times[row]) / 1e3, "frame": int(frame[row])}
