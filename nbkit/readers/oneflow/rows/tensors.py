"""Builds rows of edges and tensors of one graph, from its nodes' inputs and outputs."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from nbkit.graphs.rows import GraphRows
from nbkit.readers.element_sizes import sizes
from nbkit.readers.oneflow.text.operator_line import UNKNOWN, Description

KINDS = {"parameter", "buffer", "input", "output", "constant"}


@dataclass(slots=True)
class Reading:
    """Holds an input of a node: its slot, the tensor and how the node sees it."""

    node: int
    port: int
    slot: str | None
    tensor: str
    seen: Description


@dataclass(slots=True)
class Flow:
    """Holds what the nodes of one graph read and make, while its rows are written."""

    graph: str
    made: dict[str, tuple[int, int, str, Description]] = field(default_factory=dict)
    read: list[Reading] = field(default_factory=list)
    writes: Counter[str] = field(default_factory=Counter)

    def make(self, tensor: str, node: int, port: int, kind: str, description: Description) -> None:
        """Notes that a node makes a tensor."""
        self.writes[tensor] += 1
        self.made.setdefault(tensor, (node, port, kind if kind in KINDS else "temporary", description))

    def reads(self, node: int, port: int, slot: str | None, tensor: str, seen: Description = UNKNOWN) -> None:
        """Notes that a node reads a tensor; `seen` is what its own line says of it."""
        self.read.append(Reading(node, port, slot, tensor, seen))

    def write(self, rows: GraphRows) -> list[str]:
        """Writes the rows of edges and tensors; returns the tensors that are read and come from outside."""
        reads: Counter[str] = Counter()
        read_sbp: dict[str, list[list[str]]] = {}
        outside: dict[str, None] = {}
        for read in self.read:
            src, port, _, made = self.made.get(read.tensor, (None, None, "", UNKNOWN))
            seen = read.seen if read.seen is not UNKNOWN else made
            columns = {"slot": read.slot, "dtype": seen.dtype}
            rows.edge(src, read.node, read.tensor, dst_port=read.port, src_port=port, shape=seen.shape, **columns)
            reads[read.tensor] += 1
            if src is None:
                outside[read.tensor] = None
            elif seen.sbp != made.sbp and list(seen.sbp) not in read_sbp.setdefault(read.tensor, []):
                read_sbp[read.tensor].append(list(seen.sbp))
        for tensor, (node, _, kind, made) in self.made.items():
            self._tensor(rows, tensor, node, kind, made, reads[tensor], read_sbp.get(tensor))
        return list(outside)

    def _tensor(
        self, rows: GraphRows, tensor: str, node: int, kind: str, made: Description, reads: int, read_sbp: Any
    ) -> None:
        attributes: dict[str, Any] = {"sbp": list(made.sbp)} if made.sbp else {}
        if read_sbp:
            attributes["read_with_sbp"] = read_sbp
        rows.tensor(
            self.graph,
            tensor,
            kind,
            node_id=node,
            dtype=made.dtype,
            shape=made.shape,
            **sizes(made.dtype, made.shape),
            reads=reads,
            writes=self.writes[tensor],
            attributes=attributes,
        )
