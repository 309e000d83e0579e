"""Fills the frames of graphs with the roles of their nodes and modules and with the parts that they make."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from nbkit.analysis.structure.graph import Graph
from nbkit.analysis.structure.locating import locate_nodes
from nbkit.analysis.structure.locations import REGIONS, regions_of
from nbkit.analysis.structure.parameters import parameter_counts, parameter_forms
from nbkit.analysis.structure.repeats import number_repeats
from nbkit.analysis.structure.roles.node_roles import node_roles
from nbkit.analysis.structure.tree import Location, PartTree
from nbkit.ops.kinds import COMMUNICATION, GRADIENT, op_kind
from nbkit.schema import EDGES, GRAPH_TENSORS, MODULES, NODES, nullable
from nbkit.step.decode import cells_in
from nbkit.step.nodes import Nodes

LATER = {"backward": 1, "optimizer": 2}


def recognise(frames: Mapping[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """Returns `frames` with role, phase and part_id of `nodes` and role of `modules` filled in, and with `parts`.

    What the source says itself stays; the frames that are given stay as they are. A role that cannot be told is null.
    """
    nodes = NODES.check(frames["nodes"])
    modules = MODULES.check(frames.get("modules", MODULES.frame()))
    tensors = GRAPH_TENSORS.check(frames.get("graph_tensors", GRAPH_TENSORS.frame()))
    talks = is_communication(nodes)
    graphs = _graphs(nodes, EDGES.check(frames.get("edges", EDGES.frame())), modules, talks)
    tree, parts = _tree(nodes, graphs)
    forms = parameter_forms(nodes, tree, parts)
    _claim(tree, graphs)
    number_repeats(tree, forms)
    _claim_blocks(tree)
    _clear(tree)
    parameter_counts(tree, parts, nodes, tensors, modules)
    roles = {row: role for graph in graphs for row, role in node_roles(graph, tree, parts, talks.tolist()).items()}
    filled = nodes.assign(
        part_id=nullable(np.array(parts, dtype=np.int64)),
        role=nodes["role"].fillna(pd.Series(roles, dtype=nodes["role"].dtype).reindex(nodes.index)),
        phase=pd.Series(graphs[0].phases, dtype=nodes["phase"].dtype) if graphs else nodes["phase"],
    )
    own = np.bincount([part for part in parts if part >= 0], minlength=len(tree.parts)).tolist()
    result = {**frames, "nodes": filled, "parts": tree.frame(own)}
    return {**result, "modules": _with_roles(modules, tree)} if "modules" in frames else result


def _graphs(nodes: pd.DataFrame, edges: pd.DataFrame, modules: pd.DataFrame, talks: pd.Series) -> list[Graph]:
    first = modules.dropna(subset=["type"]).drop_duplicates("module")
    types = dict(zip(first["module"], first["type"], strict=True))
    column = phases_of(nodes, edges)
    phases = cells_in(column)
    regions = regions_of(nodes, column, talks).tolist()
    locations: list[Location] = [()] * len(nodes)
    source = Nodes(nodes, edges)
    result = []
    for name, rows in nodes.groupby("graph", sort=False).indices.items():
        kinds = nodes["kind"].iloc[rows]
        of_modules = {
            **dict(zip(*(nodes.iloc[rows][kinds.eq("module")][c] for c in ("module", "op")), strict=True)),
            **types,
        }
        result.append(Graph(str(name), list(map(int, rows)), source, phases, regions, of_modules, locations))
    return result


def _tree(nodes: pd.DataFrame, graphs: list[Graph]) -> tuple[PartTree, list[int]]:
    """Returns the parts, and of each node the index of its own."""
    tree = PartTree()
    parts = [-1] * len(nodes)
    for graph in graphs:
        locate_nodes(graph)
        met = {graph.regions[row] for row in graph.rows}
        for region in (region for region in REGIONS if graph.is_split and region in met):
            tree.at(graph.name, (region,))
        for row in graph.in_order:
            if graph.locations[row]:
                parts[row] = tree.at(graph.name, graph.locations[row])
    by_name = {graph.name: graph for graph in graphs}
    for part in tree.parts:
        graph = by_name[part.graph]
        part.module = graph.modules_at.get(part.location)
        part.type = graph.types.get(part.module) if part.module is not None else None
        part.phase = part.location[0] if graph.is_split and part.location[0] != "communication" else None
    return tree, parts


def _claim(tree: PartTree, graphs: list[Graph]) -> None:
    claims = {graph.name: graph.claims for graph in graphs}
    for part in tree.parts:
        claim = claims[part.graph].get(part.location)
        if claim:
            part.claim(*claim)
    for index, below in enumerate(tree.children()):
        roles = {tree.parts[child].role for child in below}
        if roles & {"attention", "time_mix"} and roles & {"mlp", "channel_mix"}:
            held = sorted(role for role in roles if role in ("attention", "time_mix", "mlp", "channel_mix"))
            tree.parts[index].claim("block", f"it holds {' and '.join(held)}")


def _claim_blocks(tree: PartTree) -> None:
    """Claims repeats with parts in them as blocks."""
    members: dict[int, int] = {}
    for part in tree.parts:
        if part.repeat_of is not None:
            members[part.repeat_of] = members.get(part.repeat_of, 0) + 1
    for part, below in zip(tree.parts, tree.children(), strict=True):
        if part.repeat_of is not None and below:
            part.claim("block", f"one of {members[part.repeat_of]} alike in a row")


def _clear(tree: PartTree) -> None:
    """Takes the roles of modules from their updates and collectives: the state of a norm's weight is no norm."""
    for part in tree.parts:
        if part.phase == "optimizer" or part.location[0] == "communication":
            part.role, part.evidence = None, None
        if part.location in (("optimizer",), ("communication",)):
            part.claim(part.name, "the phase of its ops" if part.name == "optimizer" else "the kind of its ops")


def _with_roles(modules: pd.DataFrame, tree: PartTree) -> pd.DataFrame:
    roles: dict[str, str] = {}
    for part in tree.parts:
        if part.module is not None and part.role is not None:
            roles.setdefault(part.module, part.role)
    recognised = modules["module"].map(roles).astype(modules["role"].dtype)
    return modules.assign(role=modules["role"].fillna(recognised))


def is_communication(nodes: pd.DataFrame) -> pd.Series:
    """Returns whether each node is a collective, a send or receive, or boxing; not what only prepares one."""
    ops = nodes["op"].dropna().unique()
    known = {op for op in ops if op_kind(op) in COMMUNICATION}
    return nodes["op"].isin(known) | (nodes["inserted"] == "boxing")


def phases_of(nodes: pd.DataFrame, edges: pd.DataFrame) -> pd.Series:
    """Returns phase of each node, as given or else as its op and what it reads say; null where neither does."""
    texts = nodes["phase"]
    if not (texts.isna() & (nodes["kind"] == "op")).any():
        return texts
    phases = cells_in(texts)
    is_open = [phase is None and kind == "op" for phase, kind in zip(phases, nodes["kind"].tolist(), strict=True)]
    _seed(nodes, phases)
    known = edges[edges["src"].notna()].sort_values("dst", kind="stable")
    for src, dst in zip(known["src"].astype("int64").tolist(), known["dst"].tolist(), strict=True):
        # What reads a gradient is backward, and what reads an update is optimizer.
        if is_open[dst] and LATER.get(phases[src], 0) > LATER.get(phases[dst], 0):
            phases[dst] = phases[src]
    is_tree = (nodes["graph"] == "module tree").tolist()
    for at, still in enumerate(is_open):
        if still and phases[at] is None and not is_tree[at]:
            phases[at] = "forward"
    return pd.Series(phases, dtype=texts.dtype, index=nodes.index)


def _seed(nodes: pd.DataFrame, phases: list[str | None]) -> None:
    """Fills the phase of ops whose type says it."""
    for at, (op, inserted) in enumerate(zip(nodes["op"].tolist(), nodes["inserted"].tolist(), strict=True)):
        if phases[at] is not None or not isinstance(op, str):
            continue
        kind = op_kind(op)
        if inserted == "optimizer" or kind == "optimizer_step":
            phases[at] = "optimizer"
        elif kind.endswith(GRADIENT):
            phases[at] = "backward"
