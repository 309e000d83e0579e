"""Sections of an optime trace: where the time and memory went, what devices did, and how far apart the repeats are."""

from collections.abc import Iterator, Sequence

import pandas as pd

from nbkit.analysis.time.device import device_use
from nbkit.analysis.time.gaps import time_by_kind
from nbkit.analysis.time.memory import held_at_peak, memory_peaks
from nbkit.analysis.time.times import by_kernel, computing_ops, host_ops, self_by_phase, self_totals
from nbkit.schema import OPS, TIMINGS
from nbkit.trace.trace import Trace
from nbkit.views.sections.section import MODULE, Section, module_names
from nbkit.views.summary import units
from nbkit.views.summary.names import shown

KINDS = {
    "op": "in ops",
    "python": "Python and torch between ops",
    "launch": "launching work on a device",
    "wait": "waiting for a device",
    "thread": "main thread waiting for others",
}


def time_sections(trace: Trace, count: int) -> list[Section]:
    """Phases, slowest ops, modules and kernels, time not in ops, devices, repeats and memory; each only if known."""
    ops = trace.frames.get("ops", OPS.frame())
    if not len(ops):
        return []
    return [*_host(ops, count), *_devices(ops, count), *_repeats(trace), *_memory(trace, count)]


def _host(ops: pd.DataFrame, count: int) -> Iterator[Section]:
    whole_us = float(host_ops(ops)["self_time_us"].sum())
    kinds, modules = self_totals(computing_ops(ops), ["op"]).head(count), self_totals(ops, MODULE).head(count)
    phases = self_by_phase(ops)
    yield _totals("Slowest ops", "op", [shown(name) for name in kinds["op"]], kinds, whole_us)
    yield _totals("Slowest modules", "module", module_names(modules), modules, whole_us)
    yield _totals("Phases", "phase", [shown(name) for name in phases["phase"]], phases, whole_us)
    places = time_by_kind(ops).groupby("kind", sort=False)[["self_time_us", "self_fraction"]].sum()
    places = places.sort_values("self_time_us", ascending=False, kind="stable")
    rows = [
        [KINDS.get(kind, kind), units.duration(time_us), units.share(fraction)]
        for kind, time_us, fraction in places.itertuples(name=None)
    ]
    yield Section("In ops and between them", "where", ("self time", "share"), rows)


def _totals(title: str, noun: str, names: Sequence[str], totals: pd.DataFrame, whole_us: float) -> Section:
    """Totals of `nbkit.analysis.time.times`; the share is that of all host time, so that the tables can be compared."""
    columns = {
        "calls": [units.count(calls) for calls in totals["calls"]],
        "self time": [units.duration(time_us) for time_us in totals["self_time_us"]],
        "share": [units.share(time_us / whole_us if whole_us else 0.0) for time_us in totals["self_time_us"]],
    }
    if totals["self_device_time_us"].notna().any():
        columns["device time"] = [units.duration(time_us) for time_us in totals["self_device_time_us"]]
    return Section(title, noun, tuple(columns), [list(row) for row in zip(names, *columns.values(), strict=True)])


def _devices(ops: pd.DataFrame, count: int) -> Iterator[Section]:
    kernels = by_kernel(ops)
    if not len(kernels):
        return
    few = kernels.head(count)
    rows = [
        [shown(str(name), 120), shown(str(device)), units.count(calls), units.duration(time_us), units.share(fraction)]
        for device, name, calls, time_us, fraction in few.itertuples(index=False, name=None)
    ]
    yield Section("Slowest kernels", "kernel", ("device", "calls", "device time", "share"), rows)
    use = device_use(ops)
    use = use[use["stream"].isna()]
    columns = (use["device"], use["kernels"], use["busy_us"], use["idle_us"], use["busy_fraction"])
    busy = [
        [shown(str(device)), units.count(number), units.duration(busy_us), units.duration(idle_us), units.share(part)]
        for device, number, busy_us, idle_us, part in zip(*columns, strict=True)
    ]
    yield Section("Devices", "device", ("kernels", "busy", "idle", "busy share"), busy)


def _repeats(trace: Trace) -> Iterator[Section]:
    """How the whole step's time varies; the step is the first op."""
    if "timings" not in trace.frames or not len(trace.frames["timings"]):
        return
    step = TIMINGS.check(trace.frames["timings"]).iloc[0]
    figures = [units.duration(step[name]) for name in ("median_us", "iqr_us", "min_us")]
    rows = [[units.counted(int(step["repeats"]), "repeat"), *figures]]
    yield Section("Repeats of the step", "step", ("median", "quartile distance", "min"), rows)


def _memory(trace: Trace, count: int) -> Iterator[Section]:
    """The peak of each device, and the modules whose allocations make it up."""
    memory = trace.frames.get("memory")
    if memory is None or not len(memory):
        return
    peaks = memory_peaks(memory)
    ops = peaks["op_id"].map(trace.ops["op"])
    rows = [
        [shown(str(device)), units.data_size(size), units.duration(time_us), shown(op) if isinstance(op, str) else None]
        for device, size, time_us, op in zip(peaks["device"], peaks["peak_bytes"], peaks["time_us"], ops, strict=True)
    ]
    yield Section("Memory at its peak", "device", ("allocated", "at", "by op"), rows)
    held = held_at_peak(memory, trace.ops, ["model", "module", "phase"]).head(count)
    columns = (held["device"], held["phase"], held["allocations"], held["held_bytes"], held["held_fraction"])
    holders = [
        [name, shown(str(device)), phase if isinstance(phase, str) else None, units.count(number),
         units.data_size(size), units.share(fraction)]
        for name, device, phase, number, size, fraction in zip(module_names(held), *columns, strict=True)
    ]  # fmt: skip
    yield Section("Held at the peak of memory", "module", ("device", "phase", "allocations", "held", "share"), holders)
