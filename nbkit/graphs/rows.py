"""GraphRows: the rows of nodes, edges and tensors that a reader meets one by one, and the frames they become."""

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import pandas as pd

from nbkit.schema import EDGES, GRAPH_TENSORS, NODES, Table

ENCODER = json.JSONEncoder(ensure_ascii=False, default=str)


def json_text(value: Any) -> str:
    """JSON text of attributes or of a shape, as the frames hold it; what JSON does not know becomes its text."""
    return ENCODER.encode(value)


@lru_cache(maxsize=4096)
def _shape_text(shape: tuple[int | None, ...]) -> str:
    return json_text(shape)


class Columns:
    """Rows of one table, held by column: a graph of a million nodes has to fit."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._columns: dict[str, list[Any]] = {name: [] for name in table.names}
        self.length = 0

    def add(self, row: dict[str, Any], shape: Sequence[int | None] | None) -> None:
        """A row; what it does not name is null. Raises SchemaError on a column that the table does not have."""
        row["shape"] = None if shape is None else _shape_text(tuple(shape))
        if not row.keys() <= self._columns.keys():
            self._table.frame([row])
        for name, column in self._columns.items():
            column.append(row.get(name))
        self.length += 1

    def frame(self) -> pd.DataFrame:
        return self._table.frame(self._columns)


class GraphRows:
    """Rows of a graph's frames; `node()` and `edge()` take what they do not name as null."""

    def __init__(self) -> None:
        self._nodes, self._edges, self._tensors = Columns(NODES), Columns(EDGES), Columns(GRAPH_TENSORS)

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
        """node_id of a new row of nodes; `columns` are others of its columns."""
        node_id = self._nodes.length
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

    def frames(self) -> dict[str, pd.DataFrame]:
        """The frames nodes, edges and graph_tensors of all rows."""
        return {
            "nodes": self._nodes.frame(),
            "edges": self._edges.frame(),
            "graph_tensors": self._tensors.frame(),
        }
