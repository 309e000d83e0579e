"""placing: the place of every node of a graph, from module paths where it has them, else from its dataflow."""

import re

from nbkit.analysis.structure.blocks import blocks
from nbkit.analysis.structure.graph import Graph
from nbkit.analysis.structure.mirror import mirror_places
from nbkit.analysis.structure.places import module_place, place_loose
from nbkit.analysis.structure.roles.module_roles import above, checked, module_roles, roles_by_patterns
from nbkit.analysis.structure.tree import Place

SCOPE = re.compile(r'"op_namescope": "([^"]*)"')


def place_nodes(graph: Graph) -> None:
    """Fills the places of a graph's nodes, and the claims and modules of those places."""
    _place_scopes(graph)
    if graph.is_flat:
        _place_blocks(graph)
    else:
        _place_modules(graph)
    if not graph.is_tree and (graph.is_split or not graph.is_flat):
        place_loose(graph.places, graph.flow, graph.regions)
    for row in graph.rows:
        if not graph.places[row] and graph.regions[row]:
            graph.places[row] = (graph.regions[row],)
        elif not graph.places[row] and graph.source.modules[row] == "" and graph.root is not None:
            graph.places[row] = (graph.root,)


def _place_modules(graph: Graph) -> None:
    modules = graph.source.modules
    known: dict[tuple[str, str], Place] = {}
    for row in graph.rows:
        module = modules[row]
        if module is None:
            continue
        key = (graph.regions[row], module)
        if key not in known:
            known[key] = module_place(*key, graph.root)
            for path in (module, *above(module)):
                if path or graph.root is not None:
                    graph.modules_at[module_place(key[0], path, graph.root)] = path
        graph.places[row] = known[key]
    _place_updates(graph)
    roles = module_roles(graph, set(graph.modules_at.values()))
    if not graph.is_tree:
        roles = roles_by_patterns(checked(roles, graph), graph)
    graph.claims.update({place: roles[path] for place, path in graph.modules_at.items() if path in roles})


def _place_updates(graph: Graph) -> None:
    """Places ops of the optimizer that have no module with that of the one parameter that they update."""
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
        graph.places[row] = module_place("optimizer", path, graph.root)
        for place in (path, *above(path)):
            if place or graph.root is not None:
                graph.modules_at[module_place("optimizer", place, graph.root)] = place


def _place_blocks(graph: Graph) -> None:
    made = blocks(graph.forward, graph.found, graph.streams)
    top: Place = ("forward",) if graph.is_split else (graph.root,) if graph.root is not None else ()
    for node, place in made.places.items():
        if graph.regions[node] in ("", "forward"):
            graph.places[node] = (*top, *place)
    place_loose(graph.places, graph.forward, graph.regions)
    graph.claims.update({(*top, *place): told for place, told in made.claims.items()})
    if graph.is_split:
        mirror_places(graph)
        for copy in ("recompute", "backward"):
            graph.claims.update({(copy, *place): told for place, told in made.claims.items()})
    if graph.root is not None and top:
        graph.modules_at[top] = ""


def _place_scopes(graph: Graph) -> None:
    """Places optimizer and communication ops without a module by the scope that their source names."""
    attributes, modules = graph.source.attributes, graph.source.modules
    for row in graph.rows:
        region = graph.regions[row]
        if region in ("optimizer", "communication") and modules[row] is None:
            scope = SCOPE.search(attributes[row] or "")
            pieces = [piece for piece in scope.group(1).split("/") if piece] if scope else []
            graph.places[row] = (region, *(re.sub(r"_\d+$", "", piece) for piece in pieces[-1:]))
