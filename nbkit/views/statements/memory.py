"""What is told of a memory snapshot in words and tables: its peak, who held it, the end, how the allocator used it."""

from collections.abc import Iterator

import pandas as pd

from nbkit import units
from nbkit.analysis.time.allocations import allocator_use, held_at_peak_by, live_at_end_by
from nbkit.analysis.time.memory import peak_rows
from nbkit.trace.trace import Trace
from nbkit.views.sections.section import Section, and_more, columns, rows_of
from nbkit.views.statements.statement import Statement, Words
from nbkit.views.summary.names import OUTSIDE, shown

LARGEST = 3
ALLOCATOR = "reserved, allocated, rounding, awaited, free, largest free block"
NO_STACK = "(no stack)"


def memory_statements(trace: Trace) -> list[Statement]:
    """Returns the statements of a snapshot, most asked first."""
    return [
        Statement("What held the memory", tuple(_peak_words(trace)), is_first=True),
        Statement("What is in use at the end", tuple(_end_words(trace))),
        Statement("What the allocator left unused", tuple(_unused_words(trace))),
    ]


def _peak_words(trace: Trace) -> Iterator[Words]:
    """Yields per device the peak, when it was, and the lines that held most of it."""
    memory = trace.memory
    if not len(memory):
        return
    held = held_at_peak_by(memory, trace.stacks, trace.blocks, ["user_line"])
    peaks = memory.iloc[peak_rows(memory)]
    for device, size, time_us in zip(peaks["device"], peaks["allocated_bytes"], peaks["time_us"], strict=True):
        most = _largest(held, device)
        yield (f"Peak of {units.data_size(size)} on {device} after {units.duration(time_us)}{most}.",)


def _end_words(trace: Trace) -> Iterator[Words]:
    """Yields per device what was in use when the snapshot was taken, and the lines that allocated most of it."""
    held = live_at_end_by(trace.blocks, trace.stacks, ["user_line"])
    for device, whole in held.groupby("device")["held_bytes"].sum().items():
        yield (f"At the end {units.data_size(whole)} are in use on {device}{_largest(held, str(device))}.",)


def _unused_words(trace: Trace) -> Iterator[Words]:
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


def memory_sections(trace: Trace, count: int) -> list[Section]:
    """Returns tables of the peak, of what held it by line and by module, of the end by line, and of the allocator."""
    return [*_peak(trace, count), *_end(trace, count)]


def _peak(trace: Trace, count: int) -> Iterator[Section]:
    memory = trace.memory
    if not len(memory):
        return
    kinds = columns("device, allocated: bytes, reserved: bytes, at: time")
    rows = rows_of(memory.iloc[peak_rows(memory)], "device, allocated_bytes, reserved_bytes, time_us")
    yield Section("Memory at its peak", kinds, rows)
    lines = held_at_peak_by(memory, trace.stacks, trace.blocks, ["user_line", "phase"])
    yield _holders("Held at the peak, by line", lines, "user_line", count)
    modules = held_at_peak_by(memory, trace.stacks, trace.blocks, ["module", "phase"])
    if modules["module"].notna().any():
        yield _holders("Held at the peak, by module", modules, "module", count)


def _end(trace: Trace, count: int) -> Iterator[Section]:
    if not len(trace.blocks):
        return
    live = live_at_end_by(trace.blocks, trace.stacks, ["user_line", "phase"])
    if len(live):
        yield _holders("In use at the end, by line", live, "user_line", count)
    use = allocator_use(trace.blocks)
    kinds = [*columns("device, segments: count"), *columns(ALLOCATOR, "bytes")]
    yield Section("Allocator at the end", kinds, list(use.itertuples(index=False, name=None)))


def _holders(title: str, held: pd.DataFrame, by: str, count: int) -> Section:
    names = held[by].where(held[by].notna(), NO_STACK if by == "user_line" else OUTSIDE)
    few, noun = held.assign(name=names).head(count), by.removeprefix("user_")
    kinds = columns(f"{noun}, device, phase: phase, allocations: count, held: bytes, share: fraction")
    rows = rows_of(few, "name, device, phase, allocations, held_bytes, held_fraction")
    return Section(title, kinds, rows, and_more(len(held), count))
