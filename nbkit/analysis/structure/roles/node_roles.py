"""Finds roles of nodes: what they do themselves, else the role of the innermost part that they belong to."""

from nbkit.analysis.structure.graph import Graph
from nbkit.analysis.structure.tree import PartTree


def node_roles(graph: Graph, tree: PartTree, part_of_node: list[int], is_communication: list[bool]) -> dict[int, str]:
    """Returns role of each node of a graph that has one."""
    innermost = _innermost(tree)
    own = {} if graph.is_tree else _own_roles(graph, is_communication)
    roles: dict[int, str] = {}
    kinds = graph.source.kinds
    for row in graph.rows:
        part = part_of_node[row]
        of_part = innermost[part] if part >= 0 else None
        if kinds[row] == "module":
            of_part = tree.parts[part].role
        role = own.get(row) or of_part
        if role is not None:
            roles[row] = role
    for match in graph.matches:
        for node in match.nodes:
            if kinds[node] == "op":
                roles.setdefault(node, match.role)
    return roles


def _innermost(tree: PartTree) -> list[str | None]:
    """Returns each part's role, or that of the nearest part above; a block says nothing of what is in it."""
    roles: list[str | None] = []
    for part in tree.parts:
        above = roles[part.parent] if part.parent is not None else None
        roles.append(part.role if part.role not in (None, "block") else above)
    return roles


def _own_roles(graph: Graph, is_communication: list[bool]) -> dict[int, str]:
    roles: dict[int, str] = {}
    inserted = graph.source.inserted
    kinds = graph.source.kinds
    casts = _casts(graph)
    for match in graph.matches:
        if match.role in ("rotary", "norm"):
            roles.update(dict.fromkeys(match.nodes, match.role))
    # A product that adds to the stream, too, is first of all the product of its part.
    additions = (addition.node for stream in graph.streams for addition in stream)
    roles.update({node: "residual" for node in additions if graph.source.does[node] == "add"})
    for row in graph.rows:
        if is_communication[row]:
            roles[row] = "communication"
        elif row in casts:
            roles[row] = "cast"
        elif inserted[row] == "optimizer" or (graph.phases[row] == "optimizer" and kinds[row] == "op"):
            roles[row] = "optimizer"
    return roles


def _casts(graph: Graph) -> set[int]:
    """Returns the ops that change the dtype of what they read, and no more."""
    dtypes = graph.source.dtypes
    result = set()
    for row in graph.rows:
        if graph.source.does[row] != "cast":
            continue
        read = {dtypes[src] for src in graph.flow.reads[row] if dtypes[src] is not None}
        is_known = read and dtypes[row] is not None
        if (is_known and read != {dtypes[row]}) or (not is_known and "cast" in str(graph.source.ops[row]).lower()):
            result.add(row)
    return result
