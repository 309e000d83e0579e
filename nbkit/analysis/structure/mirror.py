"""Finds the forward node that a recomputed or backward node belongs to, in graphs without module paths."""

import re
from collections.abc import Mapping, Sequence

from nbkit.analysis.structure.flow import Flow
from nbkit.analysis.structure.graph import Graph
from nbkit.analysis.structure.words import is_gradient, without_gradient

# How Paddle calls what it computes once more, and gradients: x.subprog_0, x@GRAD@RENAME@block0@1.
COPY = re.compile(r"(\.subprog_\d+|@GRAD.*)$")
COPIES = ("recompute", "backward")


def mirror_locations(graph: Graph) -> None:
    """Gives recomputed and backward nodes the location of their forward node, in the region of their own phase."""
    flow, phases, locations, results = graph.flow, graph.phases, graph.locations, graph.source.results
    makers: dict[str, int] = {}
    for node in graph.rows:
        if phases[node] not in COPIES:
            makers.setdefault(results[node], node)
    for node in flow.order:
        phase = phases[node]
        if phase not in COPIES or locations[node]:
            continue
        mirrored = _by_gradient(flow, node, results, makers) if phase == "backward" else None
        mirrored = _by_name(results[node], makers) if mirrored is None else mirrored
        mirrored = _by_reads(flow, node, phases) if mirrored is None and phase == "backward" else mirrored
        if mirrored is not None and locations[mirrored][:1] == ("forward",):
            locations[node] = (str(phase), *locations[mirrored][1:])


def _by_name(result: str, makers: Mapping[str, int]) -> int | None:
    """Returns the forward node whose result has this name without what marks a copy or a gradient."""
    return makers.get(COPY.sub("", result)) if COPY.search(result) else None


def _by_gradient(flow: Flow, node: int, results: Sequence[str], makers: Mapping[str, int]) -> int | None:
    """Returns the forward node of whose result a gradient op reads the gradient."""
    if not is_gradient(flow.does[node]):
        return None
    read = [results[src] for src in flow.reads[node] if "@GRAD" in results[src]]
    return _by_name(read[0], makers) if len(set(read)) == 1 else None


def _by_reads(flow: Flow, node: int, phases: Sequence[str | None]) -> int | None:
    """Returns the weight that it reads, else the forward node of its kind that shares most of its inputs."""
    forward = [src for src in flow.reads[node] if phases[src] not in ("backward", "optimizer")]
    weights = [src for src in forward if flow.is_held[src]]
    if weights or not is_gradient(flow.does[node]):
        return weights[0] if weights else None
    kind = without_gradient(flow.does[node])
    readers = [to for src in forward for to in flow.readers[src] if flow.does[to] == kind and to != node]
    return max(readers, key=readers.count, default=None)
