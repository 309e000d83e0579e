"""Sections of an optime trace: where time and memory went, devices, and how repeats vary."""

from collections.abc import Iterator, Sequence

import pandas as pd

from nbkit import units
from nbkit.analysis.time.device import device_use
from nbkit.analysis.time.gaps import time_by_kind
from nbkit.analysis.time.memory import held_at_peak, memory_peaks
from nbkit.analysis.time.times import by_kernel, computing_ops, host_ops, self_by_phase, self_totals, time_totals
from nbkit.schema import OPS, TIMINGS
from nbkit.trace.trace import Trace
from nbkit.views.sections.section import MODULE, Section, columns, module_names, rows_of, totals_section

KINDS = {
    "op": "in ops",
    "python": "Python and torch between ops",
    "compiled": "compiled regions: fused kernels, and Python around them",
    "launch": "launching work on a device",
    "wait": "waiting for a device",
    "thread": "main thread waiting for others",
}
NODE = "autograd::engine::"
LEAST_BLOCK = 0.01  # of the step


def time_sections(trace: Trace, count: int) -> list[Section]:
    """Returns tables of phases, slowest ops, modules, kernels, time not in ops, devices, repeats, memory, if known."""
    ops = trace.frames.get("ops", OPS.frame())
    if not len(ops):
        return []
    return [
        *_blocks(ops, count),
        *_host(ops, count),
        *_devices(ops, count),
        *_repeats(trace),
        *_memory(trace, count),
    ]


def _host(ops: pd.DataFrame, count: int) -> Iterator[Section]:
    whole_us = float(host_ops(ops)["self_time_us"].sum())
    kinds, modules = self_totals(computing_ops(ops), ["op"]).head(count), self_totals(ops, MODULE).head(count)
    phases = self_by_phase(ops)
    yield _totals("Slowest ops", "op", kinds["op"].tolist(), kinds, whole_us)
    yield _totals("Slowest modules", "module", module_names(modules), modules, whole_us)
    yield _totals("Phases", "phase: phase", phases["phase"].tolist(), phases, whole_us)
    totals = time_by_kind(ops).groupby("kind", sort=False)[["self_time_us", "self_fraction"]].sum()
    totals = totals.sort_values("self_time_us", ascending=False, kind="stable")
    rows = [[KINDS.get(kind, kind), *values] for kind, *values in totals.itertuples()]
    yield Section("In ops and between them", columns("where, self time: time, share: fraction"), rows)


def _blocks(ops: pd.DataFrame, count: int) -> Iterator[Section]:
    """Yields the blocks that are named in the code, by the step's wall time: DataLoader's, and those of the user.

    Autograd's nodes, and the step itself, are ranges, too.
    """
    is_named = (ops["level"] == "range") & ops["parent_id"].notna() & (ops["phase"] != "backward")
    is_named &= ~ops["op"].str.startswith(NODE).fillna(False).astype(bool)
    blocks = time_totals(ops, ["op", "level"])
    blocks = blocks[blocks["op"].isin(ops.loc[is_named, "op"]) & (blocks["level"] == "range")]
    whole_us = float(ops["total_time_us"].iloc[0]) or 1.0
    blocks = blocks[blocks["total_time_us"] >= LEAST_BLOCK * whole_us]
    blocks = blocks.sort_values("total_time_us", ascending=False, kind="stable").head(count)
    if len(blocks):
        kinds = columns("block, calls: count, total time: time, share: fraction")
        blocks = blocks.assign(share=blocks["total_time_us"] / whole_us)
        yield Section("Named blocks", kinds, rows_of(blocks, "op, calls, total_time_us, share"))


def _totals(title: str, noun: str, names: Sequence[str], totals: pd.DataFrame, whole_us: float) -> Section:
    """Returns a table of totals with their share of all host time, so that the tables can be compared."""
    with_device = bool(totals["self_device_time_us"].notna().any())
    totals = totals.assign(self_fraction=totals["self_time_us"] / (whole_us or 1.0))
    return totals_section(title, noun, names, totals, with_device=with_device)


def _devices(ops: pd.DataFrame, count: int) -> Iterator[Section]:
    kernels = by_kernel(ops)
    if not len(kernels):
        return
    kinds = columns("kernel, device, calls: count, device time: time, share: fraction")
    rows = [[name, device, *figures] for device, name, *figures in kernels.head(count).itertuples(index=False)]
    yield Section("Slowest kernels", kinds, rows)
    use = device_use(ops)
    use = use[use["stream"].isna()]
    kinds = columns("device, kernels: count, busy: time, idle: time, busy share: fraction")
    yield Section("Devices", kinds, rows_of(use, "device, kernels, busy_us, idle_us, busy_fraction"))


def _repeats(trace: Trace) -> Iterator[Section]:
    """Yields how the whole step's time varies; the step is the first op."""
    if "timings" not in trace.frames or not len(trace.frames["timings"]):
        return
    step = TIMINGS.check(trace.frames["timings"]).iloc[0]
    rows = [(units.counted(int(step["repeats"]), "repeat"), *step[["median_us", "iqr_us", "min_us"]])]
    yield Section("Repeats of the step", columns("step, median: time, IQR: time, min: time"), rows)


def _memory(trace: Trace, count: int) -> Iterator[Section]:
    """Yields the peak of each device, and the modules whose allocations make it up."""
    memory = trace.frames.get("memory")
    if memory is None or not len(memory):
        return
    peaks = memory_peaks(memory)
    kinds = columns("device, allocated: bytes, at: time, by op")
    rows = rows_of(peaks.assign(op=peaks["op_id"].map(trace.ops["op"])), "device, peak_bytes, time_us, op")
    yield Section("Memory at its peak", kinds, rows)
    held = held_at_peak(memory, trace.ops, ["model", "module", "phase"]).head(count)
    held = held.assign(name=module_names(held))
    kinds = columns("module, device, phase: phase, allocations: count, held: bytes, share: fraction")
    rows = rows_of(held, "name, device, phase, allocations, held_bytes, held_fraction")
    yield Section("Held at the peak of memory", kinds, rows)
