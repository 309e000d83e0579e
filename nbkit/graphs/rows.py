"""Collects the rows of nodes, edges and tensors that a reader meets one by one, and makes frames of them."""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import filterfalse
from typing import Any

import pandas as pd

from nbkit.schema import EDGES, GRAPH_TENSORS, NODES, Table

ENCODER = json.JSONEncoder(ensure_ascii=False, default=str)


def json_text(value: Any) -> str:
    """Returns attributes or a shape as JSON text, as the frames hold it; what JSON does not know becomes its text."""
    return ENCODER.encode(value)


@lru_cache(maxsize=4096)
def shape_text(shape: tuple[int | None, ...]) -> str:
    """Returns a shape as JSON text."""
    return json_text(shape)


class Rows:
    """Holds rows of one table as tuples: a graph of a million nodes has to fit."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._names = dict.fromkeys(table.names)
        self._rows: list[tuple[Any, ...]] = []

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, row: dict[str, Any], shape: Sequence[int | None] | None) -> None:
        """Adds a row; what it does not name is null. Raises SchemaError on a column that the table does not have."""
        row["shape"] = None if shape is None else shape_text(tuple(shape))
        if not row.keys() <= self._names.keys():
            self._table.frame([row])
        self._rows.append(tuple(map(row.get, self._names)))

    def frame(self) -> pd.DataFrame:
        """Returns the frame of all rows."""
        return self._table.frame({name: [row[at] for row in self._rows] for at, name in enumerate(self._names)})


class GraphRows:
    """Collects rows of a graph's frames; `node()` and `edge()` take what they do not name as null."""

    def __init__(self) -> None:
        self._nodes, self._edges, self._tensors = Rows(NODES), Rows(EDGES), Rows(GRAPH_TENSORS)
        self.unmade: dict[str, None] = {}  # tensors that are read and that nothing makes

    def node(
        self,
        graph: str,
        kind: str,
        name: str,
        *,
        shape: Sequence[int | None] | None = None,
        attributes: Mapping[str, Any] = {},
        **columns: Any,
    ) -> int:
        """Adds a row of nodes and returns its node_id; `columns` are others of its columns."""
        node_id = len(self._nodes)
        row = {"node_id": node_id, "graph": graph, "kind": kind, "name": name, **columns}
        row["attributes"] = json_text(attributes) if attributes else None
        self._nodes.add(row, shape)
        return node_id

    def edge(
        self,
        src: int | None,
        dst: int,
        tensor: str,
        *,
        dst_port: int,
        src_port: int | None = None,
        shape: Sequence[int | None] | None = None,
        **columns: Any,
    ) -> None:
        """Adds a row of edges; `columns` are slot and dtype."""
        row = {"src": src, "src_port": src_port, "dst": dst, "dst_port": dst_port, "tensor": tensor, **columns}
        self._edges.add(row, shape)
        if src is None:
            self.unmade[tensor] = None

    def tensor(
        self,
        graph: str,
        tensor: str,
        kind: str,
        *,
        shape: Sequence[int | None] | None = None,
        attributes: Mapping[str, Any] = {},
        **columns: Any,
    ) -> None:
        """Adds a row of graph_tensors; `columns` are others of its columns."""
        row = {"graph": graph, "tensor": tensor, "kind": kind, "reads": 0, "writes": 0, **columns}
        row["attributes"] = json_text(attributes) if attributes else None
        self._tensors.add(row, shape)

    def notes(self, is_outside: Callable[[str], bool] = lambda tensor: False) -> list[str]:
        """Returns a note if nodes read tensors that nothing in the file makes, and that do not come from outside."""
        lost = list(filterfalse(is_outside, self.unmade))
        if not lost:
            return []
        those = "1 tensor is" if len(lost) == 1 else f"{len(lost):,} tensors are"
        return [f"{those} read that nothing in the file makes, the first {lost[0]!r}: parts of the file may be lost."]

    def frames(self) -> dict[str, pd.DataFrame]:
        """Returns the frames nodes, edges and graph_tensors of all rows."""
        return {
            "nodes": self._nodes.frame(),
            "edges": self._edges.frame(),
            "graph_tensors": self._tensors.frame(),
        }
