"""The tables of an opcost trace: what the step costs, what makes up the peak of its memory, its costliest modules."""

import pandas as pd

from nbkit import units
from nbkit.analysis.time.memory import live_at_peak, memory_peaks
from nbkit.schema import COSTS, MEMORY, MODULE_COSTS, SAVED, STORAGES
from nbkit.trace.trace import Trace
from nbkit.views.sections.section import Column, Section, and_more, columns

TOTALS = (Column("phase"), Column("ops", "count"), *columns("FLOPs, elementwise"), *columns("read, written", "bytes"))
PEAK = (Column("device"), Column("memory"), Column("at the peak", "bytes"), Column("share", "fraction"))
MODULES = (
    *columns("model, module, type"),
    Column("parameters", "count"),
    *columns("FLOPs forward, FLOPs backward"),
    Column("saved for backward", "bytes"),
)
UNKNOWN = (Column("op"), Column("calls", "count"))


def cost_sections(trace: Trace, count: int) -> list[Section]:
    """Returns totals by phase, the peak by kind of memory, the modules of most FLOPs, ops of unknown FLOPs."""
    costs = COSTS.check(trace.frames.get("costs", COSTS.frame()))
    if not len(costs):
        return []
    saved = int(SAVED.check(trace.frames["saved"])["new_bytes"].sum())
    caption = (
        "FLOPs: 2 x multiply-adds of products, convolutions and attention; elementwise: all other arithmetic. "
        f"Saved for the backward pass: {units.data_size(saved)}."
    )
    sections = [Section("Cost of the step", TOTALS, _totals(costs), caption), _peak(trace)]
    modules = MODULE_COSTS.check(trace.frames["module_costs"])
    if len(modules):
        sections.append(_modules(modules, count))
    unknown = trace.meta.get("unknown_flops", {})
    if unknown:
        rows = [[op, calls] for op, calls in [*unknown.items()][:count]]
        sections.append(Section("Ops of unknown FLOPs", UNKNOWN, rows, and_more(len(unknown), count)))
    return sections


def _totals(costs: pd.DataFrame) -> list[list[object]]:
    rows: list[list[object]] = []
    for phase, of in costs.groupby("phase", sort=False):
        flops = [units.flops(float(of[name].fillna(0).sum())) for name in ("flops", "elementwise_flops")]
        rows.append([phase, len(of), *flops, int(of["read_bytes"].sum()), int(of["written_bytes"].sum())])
    return rows


def _peak(trace: Trace) -> Section:
    memory, storages = MEMORY.check(trace.frames["memory"]), STORAGES.check(trace.frames["storages"])
    held = live_at_peak(memory, trace.ops).merge(storages[["allocation_id", "kind"]], on="allocation_id")
    sums = held.groupby(["device", "kind"])["size_bytes"].sum().sort_values(ascending=False)
    peaks = memory_peaks(memory).set_index("device")["peak_bytes"]
    rows = [
        [*place, int(size), size / peaks[place[0]]] for place, size in zip([*sums.index], sums, strict=True) if size
    ]
    whole = ", ".join(f"{units.data_size(float(peak))} on {device}" for device, peak in peaks.items())
    return Section("Memory at the peak", PEAK, rows, f"The peak: {whole}.")


def _modules(modules: pd.DataFrame, count: int) -> Section:
    order = (-(modules["forward_flops"] + modules["backward_flops"])).argsort(kind="stable")
    top = modules.iloc[order[:count]]
    flops = [[units.flops(float(value)) for value in top[name]] for name in ("forward_flops", "backward_flops")]
    names = [top["model"], top["module"].replace("", "(root)"), top["type"], top["params"], *flops, top["saved_bytes"]]
    rows = [[*values] for values in zip(*names, strict=True)]
    return Section("Modules of most FLOPs, with all that they hold", MODULES, rows, and_more(len(modules), count))
