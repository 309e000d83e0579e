"""Source holds the columns of nodes and edges that structure is recognized from, as lists, for all graphs."""

from functools import cached_property
from typing import Any

import pandas as pd

from nbkit.ops.kinds import op_kind


class Source:
    """Holds a list per column, a row of `nodes` each; a null is None. `does` is the kind of an op, "" of no op."""

    def __init__(self, nodes: pd.DataFrame, edges: pd.DataFrame) -> None:
        self._nodes = nodes
        self.ops: list[str | None] = self._column("op")
        self.kinds: list[str] = nodes["kind"].tolist()
        kinds = {op: op_kind(op) for op in set(self.ops)}
        self.does = [kinds[op] for op in self.ops]
        self.modules: list[str | None] = self._column("module")
        self.shapes: list[str | None] = self._column("shape")
        self.dtypes: list[str | None] = self._column("dtype")
        known = edges[edges["src"].notna()]
        self.edges = list(zip(known["src"].astype("int64").tolist(), known["dst"].tolist(), strict=True))
        self._results = known.drop_duplicates("src")

    @cached_property
    def names(self) -> list[str]:
        """Returns name of each node."""
        return self._nodes["name"].tolist()

    @cached_property
    def inserted(self) -> list[str | None]:
        """Returns what put each node there, as its source says it."""
        return self._column("inserted")

    @cached_property
    def attributes(self) -> list[str | None]:
        """Returns JSON text of each node's attributes."""
        return self._column("attributes")

    @cached_property
    def results(self) -> list[str]:
        """Returns name of the first result of each node that an edge reads; of others their own name."""
        names = list(self.names)
        for src, tensor in zip(self._results["src"].tolist(), self._results["tensor"].tolist(), strict=True):
            names[int(src)] = tensor
        return names

    def _column(self, name: str) -> list[Any]:
        column = self._nodes[name]
        return column.astype(object).where(column.notna(), None).tolist()
