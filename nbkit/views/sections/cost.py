"""The tables of an opcost trace: what the step costs, what makes up the peak of its memory, its costliest modules."""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pandas as pd

from nbkit import units
from nbkit.analysis.cost.cost_tree import cost_tree
from nbkit.analysis.cost.op_totals import costs_of, has_whole_costs, op_totals
from nbkit.analysis.time.memory import live_rows, memory_peaks
from nbkit.schema import MEMORY, SAVED, STORAGES
from nbkit.trace.once import once_per_view
from nbkit.trace.trace import Trace
from nbkit.views.sections.section import Section, and_more, columns, module_names
from nbkit.views.sections.writers import to_html, without_middle
from nbkit.views.summary.names import shown_module

PEAK = "device, memory, at the peak: bytes, share: fraction"
TREE = "module, type, parameters: count, forward: flops, backward: flops, moved: bytes, saved: bytes"
OPS = "op, calls: count, FLOPs: flops, share: fraction, moved: bytes"
CALLS = "#: id, op, FLOPs: flops, bytes moved: bytes, module, phase: phase, source"
COSTLIEST = ["flops", "moved_bytes"]
# The end of a path tells modules apart, and a page cuts ends.
LONGEST = 46


def cost_sections(trace: Trace, count: int) -> list[Section]:
    """Returns totals by phase, the peak by kind of memory, modules and ops of most FLOPs, ops of unknown FLOPs.

    Each has predicted times if a device was given. Of a step that stopped there is none: they would be of a part.
    """
    if not has_whole_costs(trace):
        return []
    totals = op_totals(trace)
    is_timed = bool(totals["time_us"].notna().any())
    sections = [_totals(trace, totals, is_timed), _peak(trace), *_modules(trace, count, is_timed)]
    sections.append(_ops(totals, count, is_timed))
    unknown = trace.meta.get("unknown_flops", {})
    if unknown:
        rows = [[op, calls] for op, calls in [*unknown.items()][:count]]
        kinds = columns("op, calls: count")
        sections.append(Section("Ops of unknown FLOPs", kinds, rows, and_more(len(unknown), count)))
    return sections


def costliest_calls(trace: Trace, count: int) -> str:
    """Returns an HTML table of the calls that take most time, or without predicted times have most FLOPs."""
    if not has_whole_costs(trace):
        return ""
    totals = op_totals(trace)
    is_timed = bool(totals["time_us"].notna().any())
    few = totals.sort_values(["time_us"] if is_timed else COSTLIEST, ascending=False, kind="stable").head(count)
    named = few.assign(module=module_names(few), source=trace.ops["source"].iloc[few["op_id"].to_numpy()].array)
    values = [named[name] for name in ("op_id", "op", "flops", "moved_bytes", "module", "phase", "source")]
    return to_html([_section("Costliest calls", CALLS, values, few["time_us"] if is_timed else None, "")])


def _section(
    title: str, labels: str, values: Sequence[Iterable[object]], times: Iterable[object] | None, caption: str
) -> Section:
    """Makes a section of columns, with one of predicted times if they are known."""
    if times is not None:
        labels, values = f"{labels}, predicted time: time", [*values, times]
    return Section(title, columns(labels), [[*row] for row in zip(*values, strict=True)], caption)


def _totals(trace: Trace, totals: pd.DataFrame, is_timed: bool) -> Section:
    moved = costs_of(trace).groupby("phase", sort=False)[["read_bytes", "written_bytes"]].sum()
    groups = totals.groupby("phase", sort=False)
    sums = groups[["flops", "elementwise_flops", "time_us"]].sum(min_count=1)
    labels, flops = "phase, ops: count, FLOPs: flops", [sums["flops"].fillna(0.0)]
    meaning = "2 x multiply-adds of products, convolutions and attention"
    if sums["elementwise_flops"].notna().any():
        labels = f"{labels}, elementwise: flops"
        flops.append(sums["elementwise_flops"])
        meaning = f"{meaning}; elementwise: all other arithmetic"
    values = [sums.index, groups.size(), *flops, moved["read_bytes"], moved["written_bytes"]]
    saved = int(SAVED.check(trace.frames["saved"])["new_bytes"].sum())
    caption = f"FLOPs: {meaning}. Saved for the backward pass: {units.data_size(saved)}."
    times = sums["time_us"] if is_timed else None
    return _section("Cost of the step", f"{labels}, read: bytes, written: bytes", values, times, caption)


@once_per_view
def _peak(trace: Trace) -> Section:
    memory, storages = MEMORY.check(trace.frames["memory"]), STORAGES.check(trace.frames["storages"])
    held = memory.loc[live_rows(memory)[0], ["device", "allocation_id", "delta_bytes"]]
    kinds = held["allocation_id"].astype("int64").map(storages.set_index("allocation_id")["kind"])
    sums = held.groupby(["device", kinds])["delta_bytes"].sum().sort_values(ascending=False)
    peaks = memory_peaks(memory).set_index("device")["peak_bytes"]
    rows = [
        [*place, int(size), size / peaks[place[0]]] for place, size in zip([*sums.index], sums, strict=True) if size
    ]
    whole = ", ".join(f"{units.data_size(float(peak))} on {device}" for device, peak in peaks.items())
    return Section("Memory at the peak", columns(PEAK), rows, f"The peak: {whole}.")


def _modules(trace: Trace, count: int, is_timed: bool) -> Iterator[Section]:
    """Yields the modules, layers that are alike as one, without those that only hold one other."""
    tree = cost_tree(trace)
    modules = tree[tree["kind"] == "module"]
    sums = ["flops", "moved_bytes", "saved_bytes"]
    below = set(modules[["parent_id", *sums]].dropna().itertuples(index=False, name=None))
    is_shell = [row in below for row in modules[["node_id", *sums]].itertuples(index=False, name=None)]
    modules = modules[~np.array(is_shell, bool)].sort_values([*COSTLIEST, "depth"], ascending=[False, False, True])
    if not len(modules):
        return
    top = modules.head(count)
    has_models = modules["model"].nunique() > 1
    paths = [
        without_middle(shown_module(*path, with_model=has_models), LONGEST)
        for path in zip(top["model"], top["module"], strict=True)
    ]
    names = [f"{path} ×{many}" if many > 1 else path for path, many in zip(paths, top["instances"], strict=True)]
    amounts = ("params", "forward_flops", "backward_flops", "moved_bytes", "saved_bytes")
    values: list[Iterable[object]] = [names, top["type"], *(top[name] for name in amounts)]
    title = "Costliest modules, with all that they hold: FLOPs, bytes moved, bytes saved for the backward pass"
    caption = and_more(len(modules), count)
    yield _section(title, TREE, values, top["time_us"] if is_timed else None, caption)


def _ops(totals: pd.DataFrame, count: int, is_timed: bool) -> Section:
    groups = totals.groupby("op", sort=False)[[*COSTLIEST, "time_us"]].sum().assign(calls=totals.groupby("op").size())
    order = ["time_us"] if is_timed else COSTLIEST
    top = groups.sort_values(order, ascending=False, kind="stable").head(count)
    share = top["flops"] / (float(groups["flops"].sum()) or 1.0)
    values = [top.index, top["calls"], top["flops"], share, top["moved_bytes"]]
    times = top["time_us"] if is_timed else None
    return _section("Costliest ops", OPS, values, times, and_more(len(groups), count))
