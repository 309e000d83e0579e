"""Lays a trace out on tracks: the lines of a timeline on which its ops are drawn, each correctly nested."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from nbkit.errors import TraceError

Ints = npt.NDArray[np.int64]
HOST = "host"
Line = tuple[str, int]  # the host or a device, and the number of a thread or stream, -1 for an unknown stream


@dataclass(frozen=True)
class Tracks:
    """Holds tracks: `number` is that of each op; a track has a name, and belongs to the group "host" or to a device."""

    number: Ints
    names: tuple[str, ...]
    groups: tuple[str, ...]


def tracks(ops: pd.DataFrame) -> Tracks:
    """Returns a track per thread and per stream of a device; where ops cross without nesting, later ones get their own.

    Raises TraceError if an op has no time.
    """
    start, end = times_ns(ops)
    line, keys = _lines(ops)
    lane = lanes(line, start, end)
    pairs = list(zip(line.tolist(), lane.tolist(), strict=True))
    # The host before devices, threads and streams by number.
    order = sorted(set(pairs), key=lambda pair: (keys[pair[0]][0] != HOST, *keys[pair[0]], pair[1]))
    number_of = {pair: number for number, pair in enumerate(order)}
    return Tracks(
        np.fromiter((number_of[pair] for pair in pairs), dtype=np.int64, count=len(pairs)),
        tuple(_name(*keys[number]) + (f" ({layer + 1})" if layer else "") for number, layer in order),
        tuple(keys[number][0] for number, _ in order),
    )


def times_ns(ops: pd.DataFrame) -> tuple[Ints, Ints]:
    """Returns start and end of each op in ns. Raises TraceError if one has no time."""
    start, total = ops["start_us"].to_numpy(), ops["total_time_us"].to_numpy()
    if not np.isfinite(start + total).all():
        raise TraceError(
            "This trace has ops without a time, so there is no timeline to export; save it with Trace.save()."
        )
    begun = np.rint(start * 1e3).astype(np.int64)
    return begun, np.maximum(np.rint((start + total) * 1e3).astype(np.int64), begun)


def _lines(ops: pd.DataFrame) -> tuple[Ints, list[Line]]:
    """Returns per op the number of its line, and the lines."""
    known: dict[Line, int] = {}
    is_work = ops["level"] == "kernel"
    device = ops["device"].fillna("unknown device").where(is_work, HOST)
    number = ops["stream"].fillna(-1).where(is_work, ops["thread"]).to_numpy(dtype=np.int64)
    keys = zip(device.tolist(), number.tolist(), strict=True)
    line = np.fromiter((known.setdefault(key, len(known)) for key in keys), dtype=np.int64, count=len(ops))
    return line, list(known)


def _name(group: str, number: int) -> str:
    if group == HOST:
        return f"thread {number}"
    return "work" if number == -1 else f"stream {number}"


def lanes(line: Ints, start: Ints, end: Ints) -> Ints:
    """Returns per op the first lane of its line on which it lies inside, or behind, whatever began before it."""
    lane = np.zeros(len(line), dtype=np.int64)
    lines: dict[int, list[list[int]]] = {}
    for row in np.lexsort((-end, start)).tolist():
        stacks = lines.setdefault(int(line[row]), [])  # per lane the ends of what is still open, innermost last
        lane[row] = _free_lane(stacks, int(start[row]), int(end[row]))
        stacks[lane[row]].append(int(end[row]))
    return lane


def _free_lane(stacks: list[list[int]], start: int, end: int) -> int:
    for number, stack in enumerate(stacks):
        while stack and stack[-1] <= start:
            stack.pop()
        if not stack or end <= stack[-1]:
            return number
    stacks.append([])
    return len(stacks) - 1
