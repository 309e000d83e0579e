"""Counts the parameters of parts, and takes their shapes as a part's form."""

import math
from collections import defaultdict
from collections.abc import Hashable

import pandas as pd

from nbkit.analysis.structure.source import sizes
from nbkit.analysis.structure.tree import PartTree


def parameter_forms(nodes: pd.DataFrame, tree: PartTree, parts: list[int]) -> list[Hashable]:
    """Returns for each part the shapes of the parameters right in it, in no order."""
    held: dict[int, list[str]] = defaultdict(list)
    is_parameter = (nodes["kind"] == "parameter").tolist()
    for part, is_held, shape in zip(parts, is_parameter, nodes["shape"].tolist(), strict=True):
        if is_held and part >= 0:
            held[part].append(str(shape))
    forward_parts = _forward_parts(tree)
    return [tuple(sorted(held[forward_parts[index]])) for index in range(len(tree.parts))]


def parameter_counts(
    tree: PartTree, parts: list[int], nodes: pd.DataFrame, tensors: pd.DataFrame, modules: pd.DataFrame
) -> None:
    """Fills params: of a module as `modules` says it, else the elements of the parameters in a part and below."""
    known = modules.drop_duplicates("module").set_index("module")["params"]
    parameters = tensors.loc[tensors["kind"] == "parameter"].dropna(subset=["node_id", "numel"])
    numel = dict(
        zip(parameters["node_id"].astype("int64").tolist(), parameters["numel"].astype("int64").tolist(), strict=True)
    )
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
    totals, forward_parts = tree.totals(own), _forward_parts(tree)
    for index, part in enumerate(tree.parts):
        if part.module is not None and part.module in known.index:
            part.params = int(known[part.module])
        elif part.graph in graphs:
            part.params = totals[forward_parts[index]]


def _product(shape: object) -> int:
    known = sizes(shape) if isinstance(shape, str) else []
    return 0 if None in known else math.prod(size for size in known if size is not None)


def _forward_parts(tree: PartTree) -> list[int]:
    """Returns for each part the same part of the forward, which holds the parameters; itself if there is none."""
    forward = {(part.graph, part.location[1:]): at for at, part in enumerate(tree.parts) if part.phase == "forward"}
    return [
        forward.get((part.graph, part.location[1:]), at) if part.phase in ("backward", "recompute") else at
        for at, part in enumerate(tree.parts)
    ]
