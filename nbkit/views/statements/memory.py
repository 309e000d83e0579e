"""What a summary, a brief and a report say of a memory snapshot in words."""

from collections.abc import Iterator

import pandas as pd

from nbkit import units
from nbkit.analysis.time.allocations import allocator_use, held_at_peak_by, live_at_end_by
from nbkit.analysis.time.memory import peak_rows
from nbkit.trace.trace import Trace
from nbkit.views.statements.statement import Statement, Words
from nbkit.views.summary.names import shown

LARGEST = 3


def memory_statements(trace: Trace) -> list[Statement]:
    """Returns the statements of a snapshot, most asked first."""
    answers = (
        ("What held the memory", peak_words(trace)),
        ("What is in use at the end", end_words(trace)),
        ("What the allocator left unused", unused_words(trace)),
    )
    return [Statement(question, tuple(words)) for question, of in answers if (words := list(of))]


def snapshot_words(trace: Trace) -> list[Words]:
    """Returns the sentences of a brief; none for what is no snapshot."""
    if "blocks" not in trace.frames:
        return []
    return [*peak_words(trace), *end_words(trace), *unused_words(trace)]


def peak_words(trace: Trace) -> Iterator[Words]:
    """Yields per device the peak, when it was, and the lines that held most of it."""
    memory = trace.memory
    if not len(memory):
        return
    held = held_at_peak_by(memory, trace.stacks, trace.blocks, ["user_line"])
    peaks = memory.iloc[peak_rows(memory)]
    for device, size, time_us in zip(peaks["device"], peaks["allocated_bytes"], peaks["time_us"], strict=True):
        most = _largest(held, device)
        yield (f"Peak of {units.data_size(size)} on {device} after {units.duration(time_us)}{most}.",)


def end_words(trace: Trace) -> Iterator[Words]:
    """Yields per device what was in use when the snapshot was taken, and the lines that allocated most of it."""
    held = live_at_end_by(trace.blocks, trace.stacks, ["user_line"])
    for device, whole in held.groupby("device")["held_bytes"].sum().items():
        yield (f"At the end {units.data_size(whole)} are in use on {device}{_largest(held, str(device))}.",)


def unused_words(trace: Trace) -> Iterator[Words]:
    """Yields per device how much of what the allocator reserved was not allocated."""
    use = allocator_use(trace.blocks)
    names = ("device", "reserved_bytes", "allocated_bytes", "largest_free_bytes")
    for device, reserved, allocated, largest in zip(*(use[name] for name in names), strict=True):
        unused, share = reserved - allocated, (reserved - allocated) / (reserved or 1)
        yield (
            f"{units.data_size(unused)} ({units.share(share)}) of {units.data_size(reserved)} reserved on {device} "
            f"are not allocated; the largest free block has {units.data_size(largest)}.",
        )


def _largest(held: pd.DataFrame, device: str) -> str:
    """Names the lines that hold most on a device."""
    of = held[held["device"] == device].head(LARGEST)
    rows = zip(of["user_line"], of["held_fraction"], strict=True)
    parts = [
        f"{shown(line) if isinstance(line, str) else 'no known line'} ({units.share(share)})" for line, share in rows
    ]
    return f", by {', '.join(parts)}" if parts else ""
