"""Locates every node of a graph, by module paths where it has them, else by its dataflow."""

import re
from collections.abc import Mapping, Sequence

from nbkit.analysis.structure.blocks import blocks
from nbkit.analysis.structure.flow import Flow
from nbkit.analysis.structure.graph import Graph
from nbkit.analysis.structure.locations import locate_loose, module_location
from nbkit.analysis.structure.roles.module_roles import above, checked, module_roles, roles_by_patterns
from nbkit.analysis.structure.tree import Location
from nbkit.ops.kinds import GRADIENT

# How Paddle calls what it computes once more, and gradients: x.subprog_0, x@GRAD@RENAME@block0@1.
COPY = re.compile(r"(\.subprog_\d+|@GRAD.*)$")
COPIES = ("recompute", "backward")
SCOPE = re.compile(r'"op_namescope": "([^"]*)"')


def locate_nodes(graph: Graph) -> None:
    """Fills the locations of a graph's nodes, and the claims and modules of those locations."""
    _locate_scopes(graph)
    if graph.is_flat:
        _locate_blocks(graph)
    else:
        _locate_modules(graph)
    if not graph.is_tree and (graph.is_split or not graph.is_flat):
        locate_loose(graph.locations, graph.flow, graph.regions)
    for row in graph.rows:
        if not graph.locations[row] and graph.regions[row]:
            graph.locations[row] = (graph.regions[row],)
        elif not graph.locations[row] and graph.source.modules[row] == "" and graph.root is not None:
            graph.locations[row] = (graph.root,)


def _locate_modules(graph: Graph) -> None:
    modules = graph.source.modules
    known: dict[tuple[str, str], Location] = {}
    for row in graph.rows:
        module = modules[row]
        if module is None:
            continue
        key = (graph.regions[row], module)
        if key not in known:
            known[key] = module_location(*key, graph.root)
            for path in (module, *above(module)):
                if path or graph.root is not None:
                    graph.modules_at[module_location(key[0], path, graph.root)] = path
        graph.locations[row] = known[key]
    _locate_updates(graph)
    roles = module_roles(graph, set(graph.modules_at.values()))
    if not graph.is_tree:
        roles = roles_by_patterns(checked(roles, graph), graph)
    graph.claims.update({location: roles[path] for location, path in graph.modules_at.items() if path in roles})


def _locate_updates(graph: Graph) -> None:
    """Locates ops of the optimizer that have no module with that of the one parameter that they update."""
    flow, modules = graph.flow, graph.source.modules
    loose = [row for row in flow.order if graph.regions[row] == "optimizer" and modules[row] is None]
    home: dict[int, str] = {}
    for row in loose:
        read = flow.reads[row]
        held = {modules[src] for src in read if modules[src] is not None} or {home[src] for src in read if src in home}
        if len(held) == 1:
            home[row] = str(held.pop())
    for row in reversed(loose):
        read_by = {home.get(reader) for reader in flow.readers[row]}
        if row not in home and len(read_by) == 1 and (path := read_by.pop()) is not None:
            home[row] = path
    for row, path in home.items():
        graph.locations[row] = module_location("optimizer", path, graph.root)
        for location in (path, *above(path)):
            if location or graph.root is not None:
                graph.modules_at[module_location("optimizer", location, graph.root)] = location


def _locate_blocks(graph: Graph) -> None:
    made = blocks(graph.forward, graph.matches, graph.streams)
    top: Location = ("forward",) if graph.is_split else (graph.root,) if graph.root is not None else ()
    for node, location in made.locations.items():
        if graph.regions[node] in ("", "forward"):
            graph.locations[node] = (*top, *location)
    locate_loose(graph.locations, graph.forward, graph.regions)
    graph.claims.update({(*top, *location): claim for location, claim in made.claims.items()})
    if graph.is_split:
        mirror_locations(graph)
        for copy in ("recompute", "backward"):
            graph.claims.update({(copy, *location): claim for location, claim in made.claims.items()})
    if graph.root is not None and top:
        graph.modules_at[top] = ""


def _locate_scopes(graph: Graph) -> None:
    """Locates optimizer and communication ops without a module by the scope that their source names."""
    attributes, modules = graph.source.attributes, graph.source.modules
    for row in graph.rows:
        region = graph.regions[row]
        if region in ("optimizer", "communication") and modules[row] is None:
            scope = SCOPE.search(attributes[row] or "")
            pieces = [piece for piece in scope.group(1).split("/") if piece] if scope else []
            graph.locations[row] = (region, *(re.sub(r"_\d+$", "", piece) for piece in pieces[-1:]))


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
    if not flow.does[node].endswith(GRADIENT):
        return None
    read = [results[src] for src in flow.reads[node] if "@GRAD" in results[src]]
    return _by_name(read[0], makers) if len(set(read)) == 1 else None


def _by_reads(flow: Flow, node: int, phases: Sequence[str | None]) -> int | None:
    """Returns the weight that it reads, else the forward node of its kind that shares most of its inputs."""
    forward = [src for src in flow.reads[node] if phases[src] not in ("backward", "optimizer")]
    weights = [src for src in forward if flow.is_held[src]]
    if weights or not flow.does[node].endswith(GRADIENT):
        return weights[0] if weights else None
    kind = flow.does[node].removesuffix(GRADIENT)
    readers = [to for src in forward for to in flow.readers[src] if flow.does[to] == kind and to != node]
    return max(readers, key=readers.count, default=None)
