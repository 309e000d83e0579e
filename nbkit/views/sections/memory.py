"""Sections of a memory snapshot: its peak and who held it, what is in use at the end, how the allocator used it."""

from collections.abc import Iterator

import pandas as pd

from nbkit.analysis.time.allocations import allocator_use, held_at_peak_by, live_at_end_by
from nbkit.analysis.time.memory import peak_rows
from nbkit.trace.trace import Trace
from nbkit.views.sections.section import Column, Section, and_more, columns, in_rows
from nbkit.views.summary.names import OUTSIDE

HELD = (Column("allocations", "count"), Column("held", "bytes"), Column("share", "fraction"))
NO_STACK = "(no stack)"


def memory_sections(trace: Trace, count: int) -> list[Section]:
    """Returns tables of the peak, of what held it by line and by module, of the end by line, and of the allocator."""
    return [*_peak(trace, count), *_end(trace, count)]


def _peak(trace: Trace, count: int) -> Iterator[Section]:
    memory = trace.memory
    if not len(memory):
        return
    peaks = memory.iloc[peak_rows(memory)]
    kinds = (Column("device"), *columns("allocated, reserved", "bytes"), Column("at", "time"))
    names = ("device", "allocated_bytes", "reserved_bytes", "time_us")
    yield Section("Memory at its peak", kinds, in_rows(*(peaks[name] for name in names)))
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
    kinds = (
        Column("device"),
        Column("segments", "count"),
        *columns("reserved, allocated, rounding, awaited, free, largest free block", "bytes"),
    )
    yield Section("Allocator at the end", kinds, in_rows(*(use[name] for name in use)))


def _holders(title: str, held: pd.DataFrame, by: str, count: int) -> Section:
    few = held.head(count)
    names = few[by].where(few[by].notna(), NO_STACK if by == "user_line" else OUTSIDE)
    figures = (few[name] for name in ("device", "phase", "allocations", "held_bytes", "held_fraction"))
    kinds = (*columns(f"{by.removeprefix('user_')}, device"), Column("phase", "phase"), *HELD)
    return Section(title, kinds, in_rows(names, *figures), and_more(len(held), count))
