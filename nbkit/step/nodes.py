"""Nodes holds the nodes and edges of graphs as lists: what each node is and does, what it reads, and who reads it."""

from collections.abc import Iterable
from functools import cached_property

import pandas as pd

from nbkit.ops.kinds import op_kind
from nbkit.step.decode import cells_in, shapes_in

COLUMNS = ("kind", "op", "name", "module", "dtype", "inserted", "attributes")


class Nodes:
    """Holds a list per column of the frame nodes, by node_id, which is the row; a null is None.

    `does` is the kind of an op, "" of what has none.
    """

    def __init__(self, nodes: pd.DataFrame, edges: pd.DataFrame) -> None:
        self.kinds, self.ops, self.names, self.modules, self.dtypes, self.inserted, self.attributes = (
            cells_in(nodes[name]) for name in COLUMNS
        )
        kinds = {op: op_kind(op) for op in set(self.ops)}
        self.does = [kinds[op] for op in self.ops]
        self.shapes = shapes_in(nodes["shape"])
        self._edges = edges[edges["src"].notna()]

    def among(self, members: Iterable[int]) -> tuple[dict[int, list[int]], dict[int, list[int]]]:
        """Returns of some nodes what each reads of the others, and who of them reads it, in the order of the edges."""
        reads: dict[int, list[int]] = {node: [] for node in members}
        readers: dict[int, list[int]] = {node: [] for node in reads}
        for src, dst in self._pairs:
            if src in readers and dst in reads:
                reads[dst].append(src)
                readers[src].append(dst)
        return reads, readers

    @cached_property
    def _pairs(self) -> list[tuple[int, int]]:
        return list(zip(self._edges["src"].astype("int64").tolist(), self._edges["dst"].tolist(), strict=True))

    @cached_property
    def results(self) -> list[str]:
        """Returns name of the first result of each node that an edge reads; of others their own name."""
        names, first = list(self.names), self._edges.drop_duplicates("src")
        for src, tensor in zip(first["src"].tolist(), first["tensor"].tolist(), strict=True):
            names[int(src)] = tensor
        return names
