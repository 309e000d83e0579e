"""Counts the parameters of parts, tied ones where they first stand, and takes their shapes as a part's form."""

import json
import math
from collections import defaultdict
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from nbkit.analysis.structure.tree import PartTree
from nbkit.schema import TEXT
from nbkit.step.decode import cells_in, shape_of


def parameter_forms(nodes: pd.DataFrame, tree: PartTree, parts: list[int]) -> list[Hashable]:
    """Returns for each part the shapes of its direct parameters, in no order."""
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
    known = shape_of(shape) if isinstance(shape, str) else ()
    return 0 if None in known else math.prod(size for size in known if size is not None)


def _forward_parts(tree: PartTree) -> list[int]:
    """Returns for each part the same part of the forward, which holds the parameters; itself if there is none."""
    forward = {(part.graph, part.location[1:]): at for at, part in enumerate(tree.parts) if part.phase == "forward"}
    return [
        forward.get((part.graph, part.location[1:]), at) if part.phase in ("backward", "recompute") else at
        for at, part in enumerate(tree.parts)
    ]


@dataclass
class _Held:
    """Holds what a part and those in it hold; a tied parameter counts where it first stands."""

    elements: int = 0
    size_bytes: int = 0
    tied: dict[str, int] = field(default_factory=dict)
    bytes_by_dtype: dict[str, int] = field(default_factory=dict)
    unsized: int = 0


def held_parameters(nodes: pd.DataFrame, parts: pd.DataFrame, tensors: pd.DataFrame) -> pd.DataFrame:
    """Returns a row per part: the parameters in it and below, such that those of parts beside each other add up.

    `counted_params` and `counted_bytes` leave out what has its first place elsewhere: `tied_params`, whose first places
    are listed in `tied_to`. `dtypes` has the dtype of the most bytes first. `unsized_params` are parameters without
    known sizes. All are null for parts of a graph that has no parameters as nodes.
    """
    known = tensors[(tensors["kind"] == "parameter") & tensors["node_id"].notna()]
    sizes_of = {node: (size, count) for node, size, count in _rows(known, "node_id", "size_bytes", "numel")}
    above = cells_in(parts["parent_id"])
    rows = nodes[(nodes["kind"] == "parameter") & nodes["part_id"].notna()]
    held = defaultdict[int, _Held](_Held)
    first_at: dict[tuple[str, str], tuple[int, set[int]]] = {}
    for node, graph, name, dtype, part, attributes in _rows(
        rows, "node_id", "graph", "name", "dtype", "part_id", "attributes"
    ):
        holders = _holders(part, above)
        shared = _same_as(attributes)
        first, around = first_at.setdefault((graph, shared or name), (node, set(holders)))
        size_bytes, elements = sizes_of.get(first, (None, None))
        for holder in holders:
            if elements is None or size_bytes is None:
                held[holder].unsized += 1
            elif holder not in around:
                held[holder].tied[str(shared)] = elements
            elif node == first:
                _count(held[holder], dtype, elements, size_bytes)
    return _held_frame([held[part] for part in range(len(parts))], parts["graph"].isin(set(rows["graph"])))


def _rows(frame: pd.DataFrame, *columns: str) -> list[tuple[Any, ...]]:
    """Returns the rows of these columns; a null is None."""
    return list(zip(*(cells_in(frame[name]) for name in columns), strict=True))


def _holders(part: int, above: list[int | None]) -> list[int]:
    """Returns a part and those that hold it; what holds itself ends there."""
    holders: list[int] = []
    at: int | None = part
    while at is not None and at not in holders:
        holders.append(at)
        at = above[at]
    return holders


def _same_as(attributes: str | None) -> str | None:
    known = json.loads(attributes) if attributes and "same_as" in attributes else {}
    return known.get("same_as")


def _count(held: _Held, dtype: str | None, elements: int, size_bytes: int) -> None:
    held.elements += elements
    held.size_bytes += size_bytes
    if dtype is not None:
        held.bytes_by_dtype[dtype] = held.bytes_by_dtype.get(dtype, 0) + size_bytes


def _held_frame(held: list[_Held], is_known: pd.Series) -> pd.DataFrame:
    numbers = {
        "counted_params": [one.elements for one in held],
        "counted_bytes": [one.size_bytes for one in held],
        "tied_params": [sum(one.tied.values()) for one in held],
        "unsized_params": [one.unsized for one in held],
    }
    texts = {
        "dtypes": [", ".join(sorted(one.bytes_by_dtype, key=lambda name: -one.bytes_by_dtype[name])) for one in held],
        "tied_to": [", ".join(one.tied) for one in held],
    }
    columns = {name: pd.Series(values, dtype="Int64").where(is_known) for name, values in numbers.items()}
    words = {name: pd.Series([text or None for text in values], dtype=TEXT) for name, values in texts.items()}
    return pd.DataFrame({**columns, **words})
