"""What a brief and a report say of the run behind a dump: its loss, its ranks, the memory it plans, its passes."""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from nbkit import units
from nbkit.ops.kinds import op_kind
from nbkit.schema import MEMORY_PLAN, METRICS, NODES, PASSES, SETTINGS
from nbkit.schema.graphs import LAYER_VALUES
from nbkit.trace.trace import Trace
from nbkit.views.sections.graph.run import frame_in
from nbkit.views.statements.statement import Statement
from nbkit.views.summary.names import shown

# What the log of a OneFlow plan calls MiB.
PRINTED_MB = 1e6
PARTS = {"chunk": "chunks", "unreused": "tensors that share none", "eager_variables": "parameters and optimizer state"}
TOWARDS = {"receive": "receives from", "send": "sends to"}
OF_LAYERS = tuple(f"{name}/" for name in LAYER_VALUES)


def run_statements(trace: Trace) -> list[Statement]:
    """Returns the statements on a run, most asked first; none of two graphs that are compared."""
    if "correspondence" in trace.frames:
        return []
    statements = [
        _statement("How it went", _loss(trace), is_first=True),
        _statement("Which ranks", _ranks(trace), is_first=True),
        _statement("Memory planned", _memory(trace), is_first=True),
        _statement("How it was compiled", _compiled(trace), is_first=False),
    ]
    return [statement for statement in statements if statement.sentences]


def _statement(question: str, sentences: Iterator[str], *, is_first: bool) -> Statement:
    return Statement(question, tuple((text,) for text in sentences), is_first=is_first)


def _number(settings: pd.DataFrame, name: str) -> str | None:
    """Returns a setting that is a number; a config file may have an expression there."""
    texts = settings.loc[settings["name"].eq(name), "text"].dropna()
    return next((units.count(int(text)) for text in texts if text.isdecimal()), None)


def _loss(trace: Trace) -> Iterator[str]:
    metrics, settings = frame_in(trace, METRICS), frame_in(trace, SETTINGS)
    names = [name for name in metrics["name"].dropna().unique() if "loss" in name and not name.startswith(OF_LAYERS)]
    if not names:
        return
    rows = metrics[metrics["name"] == names[0]].sort_values("step", kind="stable")
    planned = _number(settings, "iterations")
    whole = f" of {planned}" if planned else ""
    steps, losses = rows["step"].tolist(), rows["value"].to_numpy()
    known = np.flatnonzero(np.isfinite(losses))
    if not len(known):
        yield f"The loss is never finite in iterations {units.count(steps[0])} to {units.count(steps[-1])}{whole}."
        return
    first, last = (units.general(float(losses[at]), 3) for at in (known[0], known[-1]))
    begin, end = (units.count(steps[at]) for at in (known[0], known[-1]))
    if len(known) == 1:
        yield f"The loss is {first} in iteration {begin}{whole}."
    else:
        change = losses[known[-1]] - losses[known[0]]
        goes = f"falls from {first} to {last}" if change < 0 else f"rises from {first} to {last}"
        yield f"The loss {goes if change else f'is {first} at both ends'} in iterations {begin} to {end}{whole}."
    if known[-1] < len(losses) - 1:
        yield f"From iteration {units.count(steps[known[-1] + 1])} on it is NaN or Inf."


def _ranks(trace: Trace) -> Iterator[str]:
    nodes, settings = frame_in(trace, NODES), frame_in(trace, SETTINGS)
    moving = nodes[nodes["ring"].notna()]
    if moving["graph"].nunique() == 1 and (partners := [*_partners(moving)]):
        yield f"This stage {' and '.join(partners)}."
    elif len(moving):
        rings = units.counted(moving["ring"].nunique(), "ring")
        yield f"{units.counted(len(moving), 'op')} in {rings} communicate."
    yield from _mesh(trace, nodes)
    if world := _number(settings, "world_size"):
        yield f"World size {world}."


def _partners(moving: pd.DataFrame) -> Iterator[str]:
    """Yields 'receives from rank 0 of ring 32': a peer is a rank within its ring, not of the whole job."""
    kinds = moving["op"].map(op_kind, na_action="ignore")
    for kind, words in TOWARDS.items():
        pairs = moving[(kinds == kind) & moving["peer"].notna()].drop_duplicates(["ring", "peer"])
        if len(pairs):
            yield f"{words} {' and '.join(f'rank {row.peer} of ring {row.ring}' for row in pairs.itertuples())}"


def _mesh(trace: Trace, nodes: pd.DataFrame) -> Iterator[str]:
    """Says the largest mesh, the one that most ops here are for, and how the optimizer is shared out."""
    paddle = trace.meta.get("paddle") or {}
    parallel, shards = paddle.get("parallelism") or {}, paddle.get("sharding") or {}
    if parallel:
        sizes = ", ".join(f"{shown(str(name))} {size}" for name, size in parallel["dimensions"].items())
        yield f"The mesh is {sizes or 'without names'} over {units.counted(len(parallel['ranks']), 'rank')}."
    meshes = nodes.loc[nodes["kind"] == "op", "mesh"].value_counts()
    if len(meshes) > 1:
        yield f"Most ops that name a mesh, {units.count(meshes.iloc[0])}, are for {shown(str(meshes.index[0]))}."
    if shards:
        owned, received = len(shards["owned"]), len(shards["received"])
        yield f"The optimizer is sharded: {units.counted(owned, 'parameter')} updated here, {received} received."


def _memory(trace: Trace) -> Iterator[str]:
    plan = frame_in(trace, MEMORY_PLAN)
    totals = plan[plan["kind"].eq("total") & plan["size_bytes"].notna()]
    if not len(totals):
        return
    at = int(totals["size_bytes"].nlargest(1).index[0])
    name, largest = plan["graph"][at], int(plan["size_bytes"][at])
    of_graph = totals[totals["graph"].eq(name)].drop_duplicates(["rank", "device"])
    where = f"on each of {len(of_graph)} devices" if len(of_graph) > 1 else "on one device"
    where = "on the device that needs most" if of_graph["size_bytes"].nunique() > 1 else where
    whose = f" of {shown(str(name))}" if totals["graph"].nunique() > 1 else ""
    # The parts of a total stand behind it.
    behind = plan.loc[at + 1 :]
    own = behind[~behind["kind"].isin(["total", "block"]).cummax()].set_index("kind")["size_bytes"].dropna()
    parts = ", ".join(f"{words} {units.data_size(own[kind])}" for kind, words in PARTS.items() if kind in own)
    printed = f"the log prints {largest / PRINTED_MB:,.2f} MiB, of 10^6 bytes each"
    yield f"The plan{whose} needs {units.data_size(largest)} {where} ({printed}){f': {parts}' if parts else ''}."


def _compiled(trace: Trace) -> Iterator[str]:
    passes = frame_in(trace, PASSES)
    known = passes["duration_us"].dropna()
    if len(passes):
        took = ", of unknown times"
        if len(known):
            longest = f"{shown(str(passes['name'][known.nlargest(1).index[0]]))} {units.duration(float(known.max()))}"
            took = f" took {units.duration(float(known.sum()))}, the longest {longest}"
        yield f"{units.count(len(passes))} compiler {'pass' if len(passes) == 1 else 'passes'}{took}."
    stages = (trace.meta.get("oneflow") or {}).get("stages") or []
    told = [(shown(str(one["stage"])), float(one["seconds"]) * 1e6) for one in stages if one.get("seconds") is not None]
    if told:
        yield f"{', '.join(f'{stage} {units.duration(seconds)}' for stage, seconds in told)}.".capitalize()
