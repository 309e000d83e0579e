"""Keeps where each tensor of a graph comes from while nodes are added, and writes its edges and its row from that."""

from dataclasses import dataclass, field
from typing import Any, Self

from nbkit.graphs.rows import GraphRows


@dataclass(slots=True)
class Value:
    """Holds a tensor: which node gives it now and on which port, and what its row of graph_tensors will say.

    `columns` are dtype and shape, where they are known. `maker` is the first node that gave it.
    """

    name: str
    kind: str = "temporary"
    columns: dict[str, Any] = field(default_factory=dict)
    node_id: int | None = None
    port: int | None = None
    maker: int | None = None
    reads: int = 0
    writes: int = 0
    attributes: dict[str, Any] = field(default_factory=dict)

    def given_by(self, node_id: int | None, port: int | None = 0) -> Self:
        """Notes that a node gives it from now on; returns itself."""
        self.node_id, self.port = node_id, port
        self.maker = node_id if self.maker is None else self.maker
        return self

    def written_by(self, node_id: int | None, port: int | None = 0) -> Self:
        """Notes the same of a node that computes it, which counts as a write."""
        self.writes += 1
        return self.given_by(node_id, port)

    def read_by(self, rows: GraphRows, node_id: int, port: int, slot: str | None = None, **seen: Any) -> None:
        """Writes the edge to a node that reads it; `seen` are dtype and shape, where that node sees others."""
        self.reads += 1
        columns = seen or self.columns
        rows.edge(self.node_id, node_id, self.name, src_port=self.port, dst_port=port, slot=slot, **columns)

    def write(self, rows: GraphRows, graph: str, **size: Any) -> None:
        """Writes its row of graph_tensors; `size` are numel and size_bytes."""
        counts = {"reads": self.reads, "writes": self.writes}
        columns = {**self.columns, **size, **counts}
        rows.tensor(graph, self.name, self.kind, node_id=self.maker, attributes=self.attributes, **columns)
