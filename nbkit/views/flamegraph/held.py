"""Draws what a memory snapshot held at its peak as a static flame graph: calls by the bytes allocated inside them."""

from html import escape

import numpy as np
import pandas as pd

from nbkit import units
from nbkit.analysis.time.allocations import allocations_at_peak
from nbkit.analysis.time.stack_timeline import shown_calls, stack_timeline
from nbkit.trace.trace import Trace
from nbkit.views.flamegraph.boxes import placed_boxes
from nbkit.views.flamegraph.svg import box, position, svg
from nbkit.views.summary.facts import phase_color
from nbkit.views.summary.names import shown

UNKNOWN = "no stack is known, such as of what was allocated before the first event"
CAPTION = "What was held at the peak: a box is a call, as wide as the bytes allocated in it and in what it called."


def with_stack_timeline(trace: Trace) -> Trace:
    """Returns a memory snapshot with its stacks over time as `ops`, for the flame graph; other traces as they are."""
    if "ops" in trace.frames or "stacks" not in trace.frames:
        return trace
    ops, left_out = stack_timeline(trace.memory, trace.stacks)
    notes = [
        "Frames are the stacks of allocations, each until the next one: their times are those between allocations.",
        *([f"The flame graph leaves out {units.counted(left_out, 'allocation')}, the smallest."] if left_out else []),
    ]
    meta = {**trace.meta, "notes": [*trace.meta.get("notes", []), *notes]}
    return Trace({**trace.frames, "ops": ops}, meta)


def held_boxes(trace: Trace, count: int = 300) -> pd.DataFrame:
    """Returns the widest boxes, each after the one it stands on: name, source, phase, depth, left_bytes, held_bytes,
    own_bytes (allocated by the call itself).

    At the bottom stands a box per device. Bytes without a stack have a box of their own.
    """
    held = allocations_at_peak(trace.memory, trace.blocks)
    ids = held["stack_id"].to_numpy(np.int64, na_value=-1)
    devices, names = pd.factorize(held["device"], sort=True)
    paths = np.full((1, len(held)), -1, np.int64)
    is_known = ids >= 0
    if is_known.any():
        known = shown_calls(trace.stacks, ids[is_known])
        paths = np.full((max(len(known), 1), len(held)), -1, np.int64)
        paths[: len(known), is_known] = known
    # What has no stack is a call of number -2 on its device.
    paths[0, (paths[0] < 0) & ~is_known] = -2
    boxes = _summed(paths, devices, held["size_bytes"].to_numpy(np.float64))
    widest = np.lexsort((np.arange(len(boxes)), -boxes["held_bytes"]))[:count]
    placed = placed_boxes(widest.tolist(), boxes["below"].tolist(), boxes["held_bytes"].tolist())
    chosen = boxes.loc[list(placed)].assign(depth=[depth for depth, _ in placed.values()])
    chosen["left_bytes"] = [left for _, left in placed.values()]
    calls = trace.stacks.reindex(chosen["call"].where(chosen["call"] >= 0, -1))
    is_device, is_unknown = (chosen["call"] == -3).to_numpy(), (chosen["call"] == -2).to_numpy()
    chosen["name"] = np.select(
        [is_device, is_unknown], [names.to_numpy(object)[chosen["device"]], UNKNOWN], calls["function"].to_numpy(object)
    )
    chosen["source"], chosen["phase"] = (
        calls["source"].to_numpy(object),
        calls["phase"].fillna("other").to_numpy(object),
    )
    return chosen[["name", "source", "phase", "depth", "left_bytes", "held_bytes", "own_bytes"]].reset_index(drop=True)


def _summed(paths: np.ndarray, devices: np.ndarray, size: np.ndarray) -> pd.DataFrame:
    """Returns a row per box: device, call (-3 for a device itself), below, held_bytes, own_bytes."""
    of, parts, start = devices.astype(np.int64), [], 0
    inner = np.vstack([paths, np.full(paths.shape[1], -1)])
    number = int(devices.max(initial=-1)) + 1
    whole, calls, below, owners = number, np.full(number, -3), np.full(number, -1), np.arange(number)
    rows = np.arange(len(size))
    for depth in range(len(inner)):
        own = np.bincount(of[rows] - start, size[rows] * (inner[depth][rows] == -1), len(calls))
        held = np.bincount(of[rows] - start, size[rows], len(calls))
        parts.append(
            pd.DataFrame({"device": owners, "call": calls, "below": below, "held_bytes": held, "own_bytes": own})
        )
        rows = rows[inner[depth][rows] != -1]
        if not len(rows):
            break
        keys = pd.DataFrame({"below": of[rows], "call": inner[depth][rows]})
        same = keys.groupby(["below", "call"], sort=False).ngroup().to_numpy()
        first = keys.drop_duplicates()
        owners = devices[rows[first.index.to_numpy()]]
        calls, below = first["call"].to_numpy(), first["below"].to_numpy()
        start = whole
        of[rows] = start + same
        whole += len(first)
    return pd.concat(parts, ignore_index=True)


def held_svg(trace: Trace, count: int = 300) -> str:
    """Draws the widest boxes as SVG in the page's colors, with a caption; empty for a snapshot without events."""
    if not len(trace.memory):
        return ""
    boxes = held_boxes(trace, count)
    whole = float(boxes.loc[boxes["depth"] == 0, "held_bytes"].sum()) or 1.0
    columns = (
        boxes[name].tolist() for name in ("name", "source", "phase", "depth", "left_bytes", "held_bytes", "own_bytes")
    )
    drawn = "".join(
        box(shown(name), _figures(source, held, own, whole), phase_color(phase), position(left, depth, held, whole))
        for name, source, phase, depth, left, held, own in zip(*columns, strict=True)
    )
    label = f"Flame graph of {units.data_size(whole)} held at the peak: {units.counted(len(boxes), 'call path')}"
    picture = svg(label, int(boxes["depth"].max()) + 1, drawn)
    return f'<figure style="margin:0 0 12px">{picture}<figcaption>{escape(CAPTION)}</figcaption></figure>'


def _figures(source: object, held: float, own: float, whole: float) -> str:
    place = f"{shown(source)} · " if isinstance(source, str) else ""
    return f"{place}{units.data_size(held)} held, {units.data_size(own)} of it its own, {units.share(held / whole)}"
