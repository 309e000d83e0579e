"""Mirror: which forward node a recomputed or backward node belongs to, in graphs without module paths."""

import re
from collections.abc import Mapping, Sequence

from nbkit.analysis.structure.flow import Flow
from nbkit.analysis.structure.tree import Place
from nbkit.analysis.structure.words import base_name

# How Paddle calls what it computes once more, and gradients: x.subprog_0, x@GRAD@RENAME@block0@1.
COPY = re.compile(r"(\.subprog_\d+|@GRAD.*)$")
GRADIENT = re.compile(r"_(double_)?(grad|backward)$")


def mirror_places(flow: Flow, phases: Sequence[str | None], results: Mapping[int, str], places: list[Place]) -> None:
    """Gives recomputed and backward nodes the place of their forward node, in the region of their own phase.

    `results` is the name of each node's first result.
    """
    first = [node for node in results if phases[node] not in ("backward", "recompute")]
    makers = {results[node]: node for node in reversed(first)}
    for node in flow.order:
        phase = phases[node]
        if phase not in ("recompute", "backward") or places[node]:
            continue
        twin = _by_gradient(flow, node, results, makers) if phase == "backward" else None
        twin = _by_name(results.get(node), makers) if twin is None else twin
        twin = _by_reads(flow, node, phases) if twin is None and phase == "backward" else twin
        if twin is not None and places[twin][1:]:
            places[node] = (phase, *places[twin][1:])


def _by_name(result: str | None, makers: Mapping[str, int]) -> int | None:
    """The forward node whose result has this name without what marks a copy or a gradient."""
    if result is None or not COPY.search(result):
        return None
    return makers.get(COPY.sub("", result))


def _by_gradient(flow: Flow, node: int, results: Mapping[int, str], makers: Mapping[str, int]) -> int | None:
    """Of a gradient op the forward node of whose result it reads the gradient."""
    if not GRADIENT.search(flow.names[node]):
        return None
    read = [results[src] for src in flow.reads[node] if "@GRAD" in results.get(src, "")]
    return _by_name(read[0], makers) if len(set(read)) == 1 else None


def _by_reads(flow: Flow, node: int, phases: Sequence[str | None]) -> int | None:
    """Of a gradient op the forward node of the same kind that reads most of the forward values it reads."""
    kind = GRADIENT.sub("", flow.names[node])
    if kind == flow.names[node]:
        return None
    forward = [src for src in flow.reads[node] if phases[src] not in ("backward", "optimizer")]
    readers = [to for src in forward for to in flow.readers[src] if flow.names[to] == base_name(kind) and to != node]
    return max(readers, key=readers.count, default=None)
