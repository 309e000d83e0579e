"""GraphRows: the rows of nodes, edges and tensors that a reader meets one by one, and the frames they become."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from nbkit.schema import EDGES, GRAPH_TENSORS, NODES


def json_text(value: Any) -> str:
    """JSON text of attributes or of a shape, as the frames hold it; what JSON does not know becomes its text."""
    return json.dumps(value, ensure_ascii=False, default=str)


class GraphRows:
    """Rows of a graph's frames; `node()` and `edge()` take what they do not name as null."""

    def __init__(self) -> None:
        self._nodes: list[dict[str, Any]] = []
        self._edges: list[dict[str, Any]] = []
        self._tensors: list[dict[str, Any]] = []

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
        row = {"node_id": len(self._nodes), "graph": graph, "kind": kind, "name": name, **columns}
        row["shape"] = None if shape is None else json_text(list(shape))
        row["attributes"] = json_text(attributes) if attributes else None
        self._nodes.append(row)
        return int(row["node_id"])

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
        row["shape"] = None if shape is None else json_text(list(shape))
        self._edges.append(row)

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
        row["shape"] = None if shape is None else json_text(list(shape))
        row["attributes"] = json_text(attributes) if attributes else None
        self._tensors.append(row)

    def frames(self) -> dict[str, pd.DataFrame]:
        """The frames nodes, edges and graph_tensors of all rows."""
        return {
            "nodes": NODES.frame(self._nodes),
            "edges": EDGES.frame(self._edges),
            "graph_tensors": GRAPH_TENSORS.frame(self._tensors),
        }
