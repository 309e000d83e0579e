"""Parameters of parts: how many elements they have, and their shapes as a part's form."""

import math
from collections import defaultdict
from collections.abc import Hashable

import pandas as pd

from nbkit.analysis.structure.source import sizes
from nbkit.analysis.structure.tree import PartTree


def parameter_forms(nodes: pd.DataFrame, tree: PartTree, parts: list[int]) -> list[Hashable]:
    """Of each part the shapes of the parameters right in it, in no order."""
    held: dict[int, list[str]] = defaultdict(list)
    is_parameter = (nodes["kind"] == "parameter").tolist()
    for part, is_one, shape in zip(parts, is_parameter, nodes["shape"].tolist(), strict=True):
        if is_one and part >= 0:
            held[part].append(str(shape))
    twins = _twins(tree)
    return [tuple(sorted(held[twins[index]])) for index in range(len(tree.parts))]


def parameter_counts(
    tree: PartTree, parts: list[int], nodes: pd.DataFrame, tensors: pd.DataFrame, modules: pd.DataFrame
) -> None:
    """Fills params: of a module as `modules` says it, else the elements of the parameters in a part and below."""
    known = modules.drop_duplicates("module").set_index("module")["params"]
    given = tensors.loc[tensors["kind"] == "parameter"].dropna(subset=["node_id", "numel"])
    numel = dict(zip(given["node_id"].astype("int64").tolist(), given["numel"].astype("int64").tolist(), strict=True))
    own = [0] * len(tree.parts)
    graphs = set()
    rows = nodes.index[nodes["kind"] == "parameter"].tolist()
    shapes = nodes["shape"].tolist()
    names = nodes["graph"].tolist()
    for row in rows:
        graphs.add(names[row])
        count = numel.get(row, _product(shapes[row]) if not len(tensors) else 0)
        if parts[row] >= 0:
            own[parts[row]] += count
    totals, twins = tree.totals(own), _twins(tree)
    for index, part in enumerate(tree.parts):
        if part.module is not None and part.module in known.index:
            part.params = int(known[part.module])
        elif part.graph in graphs:
            part.params = totals[twins[index]]


def _product(shape: object) -> int:
    known = sizes(shape) if isinstance(shape, str) else []
    return 0 if None in known else math.prod(size for size in known if size is not None)


def _twins(tree: PartTree) -> list[int]:
    """Of each part the same part of the forward, which holds the parameters; itself if there is none."""
    forward = {(part.graph, part.place[1:]): at for at, part in enumerate(tree.parts) if part.phase == "forward"}
    return [
        forward.get((part.graph, part.place[1:]), at) if part.phase in ("backward", "recompute") else at
        for at, part in enumerate(tree.parts)
    ]
