"""What a summary, a brief and a report say in words of a step's cost: the memory it needs, its FLOPs, its time."""

from collections.abc import Iterator, Mapping

import pandas as pd

from nbkit import units
from nbkit.analysis.cost.cost_tree import cost_tree
from nbkit.analysis.cost.memory_by_kind import memory_by_kind
from nbkit.analysis.cost.op_totals import costs_of, has_whole_costs
from nbkit.analysis.graph.op_graph import BACKWARD_CALLS
from nbkit.analysis.time.memory import peak_rows
from nbkit.schema.cost import NODE_COSTS, STORAGE_KINDS
from nbkit.trace.trace import Trace
from nbkit.views.statements.peaks import held_by_lines
from nbkit.views.statements.statement import Statement, Words, op_link
from nbkit.views.summary.names import shown, shown_module

QUESTIONS = ("How much memory", "How much to compute", "How long it would take", "Values that depend on data")
NODE_QUESTIONS = ("How much is saved", "How much to compute", "How it is counted")
LARGEST = 3
# A module has most of something from this share on.
MOST = 0.5


def cost_statements(trace: Trace) -> list[Statement]:
    """Answers what is asked of a cost, most asked first; nobody knows that of a step that stopped."""
    if not has_whole_costs(trace):
        return []
    answers = zip(QUESTIONS, (_memory(trace), _flops(trace), _time(trace), _values(trace)), strict=True)
    return [Statement(question, tuple(words), is_first=True) for question, of in answers if (words := list(of))]


def _memory(trace: Trace) -> Iterator[Words]:
    """Yields per device the peak, where it is, and what makes it up; then what is saved for the backward pass."""
    memory = trace.frames.get("memory")
    if memory is None or not len(memory) or "storages" not in trace.frames:
        return
    kinds = memory_by_kind(memory, trace.storages)
    rows = kinds.iloc[peak_rows(memory)].sort_values("allocated_bytes", ascending=False, kind="stable")
    for row in rows.to_dict("records"):
        size = int(row["allocated_bytes"])
        held = sorted(((int(row[name]), name) for name in STORAGE_KINDS if row.get(name)), reverse=True)[:LARGEST]
        parts = ", ".join(f"{name} {units.data_size(part)} ({units.share(part / size)})" for part, name in held)
        peak = f"It needs {_at_most(trace)}{units.data_size(size)} on {shown(str(row['device']))}"
        made_of = f": {parts}." if parts else "."
        if pd.isna(row["op_id"]):
            yield (f"{peak} from the start{made_of}",)
        else:
            op = trace.ops.iloc[int(row["op_id"])]
            yield f"{peak} at its peak, in ", op_link(shown(op["op"]), int(row["op_id"])), f" ({op['phase']}){made_of}"
    yield from _fits(trace, int(rows["allocated_bytes"].max()))
    yield from held_by_lines(trace, str(rows["device"].iloc[0]))
    saved = int(trace.saved["new_bytes"].sum()) if "saved" in trace.frames else 0
    if saved:
        passes = int(trace.ops["op"].isin(BACKWARD_CALLS).sum())
        whom = f"{passes} backward passes, in all" if passes > 1 else "the backward pass"
        yield (f"{_at_most(trace).capitalize()}{units.data_size(saved)} are saved for {whom}.",)


def _fits(trace: Trace, peak: int) -> Iterator[Words]:
    """Yields whether the peak fits into the memory of the device that was given, if that is known."""
    device = trace.meta.get("cost_device") or {}
    if not device.get("memory_bytes"):
        return
    room, name = int(device["memory_bytes"]), shown(str(device["name"]))
    if peak <= room:
        yield (f"It fits into the {units.data_size(room)} of {name}: {units.share(peak / room)} of it.",)
    else:
        yield (f"It does not fit into the {units.data_size(room)} of {name}: {units.data_size(peak - room)} too much.",)


def _flops(trace: Trace) -> Iterator[Words]:
    """Yields all FLOPs, those of each pass, the module that has most of them, and the ops that no rule knows."""
    costs = costs_of(trace)
    by_phase = costs.groupby("phase", sort=False)["flops"].sum()
    whole = int(by_phase.sum())
    parts = [f"{shown(str(phase))} {units.flops(float(flops))}" for phase, flops in by_phase.items() if flops]
    split = f" ({', '.join(parts)})" if len(parts) > 1 else ""
    yield (f"It computes {_at_most(trace)}{units.flops(whole)}{split}{_dominant(trace) if whole else ''}.",)
    unknown = trace.meta.get("unknown_flops") or {}
    if unknown:
        names = ", ".join(shown(str(op)) for op in [*unknown][:LARGEST])
        more = units.counted(len(unknown), "op")
        yield (f"FLOPs of {more} are not known and not in it: {names}.",)


def _dominant(trace: Trace) -> str:
    """Names the innermost module with most FLOPs, layers that are alike as one, and the op with most."""
    tree = cost_tree(trace)
    whole = int(tree.loc[tree["depth"] == 0, "flops"].sum())
    inside = tree[(tree["kind"] == "module") & (tree["depth"] > 0) & (tree["flops"] >= MOST * whole)]
    modules = inside.sort_values("depth", kind="stable").tail(1)
    ops = tree[tree["kind"] == "op"].groupby("name", sort=False)["flops"].sum().sort_values(ascending=False).head(1)
    most = [
        f"{units.share(flops / whole)} in {shown_module(None, module)}"
        for module, flops in zip(modules["module"], modules["flops"], strict=True)
    ]
    most += [f"{units.share(flops / whole)} in {shown(str(op))}" for op, flops in ops.items()]
    return f", {' and '.join(most)}"


def _time(trace: Trace) -> Iterator[Words]:
    """Yields the predicted time and what bounds it; nothing without a device."""
    costs = costs_of(trace)
    if "time_us" not in costs or not costs["time_us"].notna().any():
        return
    whole = float(costs["time_us"].sum())
    bounds = costs.groupby("bound", sort=False)["time_us"].sum().sort_values(ascending=False) / (whole or 1.0)
    parts = ", ".join(f"{shown(str(bound))} bound {units.share(share)}" for bound, share in bounds.items())
    device = trace.meta.get("cost_device")
    where = f" on {shown(str(device['name']))}" if device else ""
    phases = costs.groupby("phase", sort=False)["time_us"].sum()
    each = ", ".join(f"{shown(str(phase))} {units.duration(time)}" for phase, time in phases.items() if time)
    yield (f"Predicted time {_at_most(trace)}{units.duration(whole)}{where} ({each}): {parts}.",)


def _at_most(trace: Trace) -> str:
    """Returns what stands before a number that holds a bound."""
    return "at most " if trace.meta.get("bounded_values") else ""


def _values(trace: Trace) -> Iterator[Words]:
    """Yields how many values that depend on data the count follows, and how many a bound stands for."""
    computed, bounds = (trace.meta.get(name) or {} for name in ("computed_values", "bounded_values"))
    if computed:
        count = sum(computed.values())
        were = f"{units.counted(count, 'value')} of its data {'was' if count == 1 else 'were'} computed"
        yield (f"To count it, {were}: {_places(computed)}.",)
    if bounds:
        count = sum(bounds.values())
        rest = f"{'are' if count > 1 else 'is'} counted at the largest: {_places(bounds)}"
        yield (
            f"{units.counted(count, 'result')} whose size depends on data {rest}; values='run' takes the true size.",
        )


def _places(counts: Mapping[str, int]) -> str:
    more = f" and {units.counted(len(counts) - LARGEST, 'more place')}" if len(counts) > LARGEST else ""
    return ", ".join(shown(place) for place in [*counts][:LARGEST]) + more


def node_statements(trace: Trace) -> list[Statement]:
    """Answers what a model saves and computes, and which node has most of it."""
    counted = [(f"{shown(str(text), 200)}.",) for text in trace.meta.get("counted", [])]
    answers = zip(NODE_QUESTIONS, (_saved_by_nodes(trace), _flops_of_nodes(trace), counted), strict=True)
    return [Statement(question, words, is_first=True) for question, of in answers if (words := tuple(of))]


def _saved_by_nodes(trace: Trace) -> Iterator[Words]:
    table = NODE_COSTS.check(trace.frames["node_costs"])
    if not len(table):
        return
    saved, most = int(table["accumulate_bytes"].iloc[-1]), int(table["incremental_bytes"].argmax())
    adds = int(table["incremental_bytes"].iloc[most])
    text = f"It saves {units.data_size(saved)} for the backward pass"
    link = op_link(shown(str(table["name"].iloc[most])), most)
    yield (f"{text}, the most ({units.data_size(adds)}) in ", link, ".") if adds > 0 else (f"{text}.",)


def _flops_of_nodes(trace: Trace) -> Iterator[Words]:
    table = NODE_COSTS.check(trace.frames["node_costs"])
    forward, backward = (table[f"{phase}_flops"] for phase in ("forward", "backward"))
    sums = f"{units.flops(float(forward.sum()))} forward, {units.flops(float(backward.sum()))} backward"
    both = (forward + backward).fillna(0)
    if len(table) and both.max() > 0:
        most = int(both.argmax())
        share = units.share(float(both.iloc[most]) / float(both.sum()))
        link = op_link(shown(str(table["name"].iloc[most])), most)
        yield (f"It computes {sums}; {share} of it in ", link, ".")
    else:
        yield (f"It computes {sums}.",)
    unknown = forward.isna() | backward.isna()
    if unknown.any():
        names = ", ".join(shown(str(name)) for name in table["name"][unknown].head(3))
        more = units.and_more(int(unknown.sum()) - 3) if unknown.sum() > 3 else ""
        yield (f"FLOPs of {units.counted(int(unknown.sum()), 'node')} are not known and not in it: {names}{more}.",)
