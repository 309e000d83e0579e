"""Where each node of a graph belongs, from its module path and its phase: the parts that come from names."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pandas as pd

from nbkit.analysis.structure.tree import Part, PartTree, Place

# A graph with any of these is a whole training step: each phase of it is a part at the top, with the modules below.
TRAINING = ("backward", "optimizer")


def module_parts(nodes: pd.DataFrame, types: Mapping[str, str]) -> tuple[PartTree, npt.NDArray[np.int64]]:
    """The parts that module paths and phases make, and of each node the index of its innermost one, -1 for none.

    `types` is the class of each module path.
    """
    tree = PartTree()
    found = np.full(len(nodes), -1, dtype=np.int64)
    regions = regions_of(nodes)
    keys = pd.DataFrame({"graph": nodes["graph"], "region": regions, "module": nodes["module"]})
    groups = keys.groupby(["graph", "region", "module"], sort=False, dropna=False)
    codes = groups.ngroup().to_numpy()
    roots = _roots(nodes)
    for code, (graph, region, module) in enumerate(groups.size().index):
        found[codes == code] = _part_of(tree, graph, region, module if isinstance(module, str) else None, roots, types)
    split = set(nodes.loc[regions != "", "graph"].unique())
    for part in tree.parts:
        is_phase = part.graph in split and part.place[0] != "communication"
        part.phase = part.place[0] if is_phase else None
    return tree, found


def regions_of(nodes: pd.DataFrame) -> pd.Series:
    """The region of each node: its phase in graphs of a whole training step, communication apart; '' in others."""
    is_training = nodes["graph"].isin(nodes.loc[nodes["phase"].isin(TRAINING), "graph"].unique())
    regions = nodes["phase"].fillna("").where(is_training, "").astype(object)
    return regions.where(~(is_training & (nodes["role"] == "communication")), "communication")


def path_of(module: str) -> Place:
    """The names of a module path; of the root none."""
    return tuple(module.split(".")) if module else ()


def _roots(nodes: pd.DataFrame) -> set[str]:
    """Graphs with nodes of the root module."""
    return set(nodes.loc[nodes["module"] == "", "graph"].unique())


def _part_of(
    tree: PartTree, graph: str, region: str, module: str | None, roots: set[str], types: Mapping[str, str]
) -> int:
    has_root = graph in roots
    top: Place = (region,) if region else (types.get("") or graph,) if has_root and module is not None else ()
    if module is None:
        return tree.at(graph, top) if top else -1
    path = path_of(module)
    part = tree.at(graph, (*top, *path)) if top or path else -1
    # Those above it may have no nodes of their own, and are told by the path alone.
    for depth in range(len(path), -1 if has_root else 0, -1):
        _describe(tree.parts[tree.at(graph, (*top, *path[:depth]))], ".".join(path[:depth]), types)
    return part


def _describe(part: Part, module: str, types: Mapping[str, str]) -> None:
    part.module, part.type = module, types.get(module)
