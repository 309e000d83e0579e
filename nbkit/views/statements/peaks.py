"""Says in words where the memory of a step is at its peak: how much, in which op, which module and lines hold it."""

from collections.abc import Iterator
from typing import Any

import pandas as pd

from nbkit import units
from nbkit.analysis.time.memory import held_at_peak, memory_peaks
from nbkit.trace.trace import Trace
from nbkit.views.sections.section import MODULE, module_names
from nbkit.views.statements.statement import Words, op_link
from nbkit.views.summary.names import short_sources, shown

# So many lines are named, each of which holds so much of the peak.
LINES, LEAST = 3, 0.1


def peak_words(trace: Trace, title: str = "") -> Iterator[Words]:
    """Yields for each device the peak behind a title, where it is, and which module and lines hold it."""
    memory = trace.frames.get("memory")
    if memory is None or not len(memory):
        return
    held, peaks = held_at_peak(memory, trace.ops, MODULE), memory_peaks(memory)
    names = ("device", "peak_bytes", "time_us", "op_id")
    for row in zip(*(peaks[name].tolist() for name in names), strict=True):
        first, *rest = _peak(trace, held, *row)
        yield f"{title}{first}", *rest
        yield from held_by_lines(trace, row[0])


def _peak(trace: Trace, held: pd.DataFrame, device: str, size: int, time_us: float, op_id: Any) -> Words:
    """Returns the peak of one device, the op that was running, and the module that held most of it."""
    most = held[held["device"] == device].head(1)
    holders = zip(module_names(most), most["held_fraction"], strict=True)
    holder = "".join(f"; most of it, {units.share(share)}, by {name}" for name, share in holders)
    at = f"{units.data_size(size)} on {shown(device)} after {units.duration(time_us)}"
    if trace.meta.get("verb") == "opdoctor":  # its memory knows no ops
        return (f"{at}.",)
    if pd.isna(op_id):
        return (f"{at}, outside any op{holder}.",)
    return f"{at}, in ", op_link(shown(trace.ops["op"].iloc[int(op_id)]), int(op_id)), f"{holder}."


def held_by_lines(trace: Trace, device: str) -> Iterator[Words]:
    """Yields the lines whose ops, forward and backward, made the most of what a device holds at its peak."""
    held = held_at_peak(trace.memory, trace.ops, ["source"]).dropna(subset="source")
    held = held[(held["device"] == device) & (held["held_fraction"] >= LEAST)].head(LINES)
    if not len(held):
        return
    lines = [shown(text) for text in short_sources(held["source"].tolist())]
    sizes = [
        f"{units.data_size(int(size))} ({units.share(share)})"
        for size, share in zip(held["held_bytes"], held["held_fraction"], strict=True)
    ]
    more = "".join(f", {line} {size}" for line, size in zip(lines[1:], sizes[1:], strict=True))
    yield (f"{lines[0]} made {sizes[0]} of the peak{more}.",)
