"""Builds rows of edges and tensors of one graph, from its nodes' inputs and outputs."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from nbkit.graphs.rows import GraphRows
from nbkit.graphs.values import Value
from nbkit.readers.element_sizes import sizes
from nbkit.readers.oneflow.text.operator_line import UNKNOWN, Description, sbp_text

KINDS = {"parameter", "buffer", "input", "output", "constant"}


@dataclass(slots=True)
class Flow:
    """Holds what the nodes of one graph read and make, while its rows are written: a line may read what a later makes.

    `read` are node, port, slot, tensor, and how the node sees it.
    """

    graph: str
    made: dict[str, Value] = field(default_factory=dict)
    read: list[tuple[int, int, str | None, str, Description]] = field(default_factory=list)

    def node(
        self,
        rows: GraphRows,
        kind: str,
        name: str,
        outputs: Sequence[tuple[str, Description]],
        otherwise: Description = UNKNOWN,
        **columns: Any,
    ) -> int:
        """Adds a node and what it makes; its dtype and shape are those of its first output, if it has one."""
        first = outputs[0][1] if outputs else otherwise
        node = rows.node(self.graph, kind, name, **_columns(first), **columns)
        for port, (tensor, seen) in enumerate(outputs):
            self.make(tensor, node, port, kind, seen)
        return node

    def make(self, tensor: str, node: int, port: int, kind: str, description: Description) -> None:
        """Notes that a node makes a tensor."""
        if (made := self.made.get(tensor)) is not None:
            made.writes += 1  # the first one that does counts as its maker
            return
        value = Value(tensor, kind if kind in KINDS else "temporary", _columns(description))
        value.attributes = {"sbp": list(description.sbp)} if description.sbp else {}
        self.made[tensor] = value.written_by(node, port)

    def reads(self, node: int, port: int, slot: str | None, tensor: str, seen: Description = UNKNOWN) -> None:
        """Notes that a node reads a tensor; `seen` is what its own line says of it."""
        self.read.append((node, port, slot, tensor, seen))

    def write(self, rows: GraphRows) -> list[str]:
        """Writes the rows of edges and tensors; returns the tensors that are read and come from outside."""
        outside: dict[str, None] = {}
        for node, port, slot, tensor, seen in self.read:
            value = self.made.get(tensor) or Value(tensor)
            value.read_by(rows, node, port, slot, **({} if seen is UNKNOWN else _columns(seen)))
            if value.maker is None:
                outside[tensor] = None
            elif seen is not UNKNOWN and list(seen.sbp) != value.attributes.get("sbp", []):
                known = value.attributes.setdefault("read_with_sbp", [])
                if list(seen.sbp) not in known:
                    known.append(list(seen.sbp))
        for value in self.made.values():
            value.write(rows, self.graph, **sizes(value.columns.get("dtype"), value.columns.get("shape")))
        return list(outside)


def _columns(description: Description) -> dict[str, Any]:
    return {"dtype": description.dtype, "shape": description.shape, "sbp": sbp_text(description.sbp)}
