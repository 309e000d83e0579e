"""Side holds one graph of a comparison, in the form in which its nodes, tensors and parts are looked up."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

import numpy as np
import pandas as pd

from nbkit.ops.kinds import PASSING
from nbkit.schema import NODES, PARTS
from nbkit.step.decode import Shape, cells_in
from nbkit.step.nodes import Nodes
from nbkit.step.reachable import reachable


@dataclass(frozen=True)
class Node:
    """A node; `kind` is that of the frame, `does` what its op does in the words of nbkit.ops.kinds."""

    node_id: int
    kind: str
    op: str | None
    does: str
    name: str | None
    module: str | None
    part: int | None
    role: str | None
    phase: str | None
    dtype: str | None
    shape: Shape | None
    arguments: str | None = None

    @property
    def is_state(self) -> bool:
        """Returns whether it is a parameter or a buffer."""
        return self.kind in ("parameter", "buffer")

    @property
    def is_passing(self) -> bool:
        """Returns whether the numbers that it gives are those that it reads."""
        return self.kind == "op" and self.does in PASSING


@dataclass
class Part:
    """A part; `children` are in order, `first_node` is the first node in it or below."""

    part_id: int
    parent: int | None
    name: str
    module: str | None
    type: str | None
    role: str | None
    phase: str | None
    params: int | None
    children: list[int] = field(default_factory=list)
    first_node: int | None = None


@dataclass(frozen=True)
class Side:
    """One graph: its nodes in order, of each its readers and what it reads (in the order of its inputs), its parts."""

    nodes: dict[int, Node]
    inputs: dict[int, list[int]]
    readers: dict[int, list[int]]
    parts: dict[int, Part]
    _uses: dict[int, list[int]] = field(default_factory=dict)

    def ancestors(self, part: int | None) -> list[int]:
        """Returns `part` and those above it, innermost first."""
        result = []
        while part is not None:
            result.append(part)
            part = self.parts[part].parent
        return result

    def role_around(self, node: Node) -> str | None:
        """Returns the role of a node, else of the innermost part around it that has one."""
        return node.role or next((role for one in self.ancestors(node.part) if (role := self.parts[one].role)), None)

    def sources(self, node: int) -> list[int]:
        """Returns what the node reads, through casts, views and copies."""
        return [self._origin(source) for source in self.inputs[node]]

    @cached_property
    def has_ops(self) -> bool:
        """Returns whether something is computed: a tree of modules only holds parameters."""
        return any(node.kind == "op" for node in self.nodes.values())

    def uses(self, node: int) -> list[int]:
        """Returns nodes that read what the node gives, through casts, views and copies, in their order."""
        if node not in self._uses:
            nodes, readers = self.nodes, self.readers
            read = reachable([node], lambda one: readers[one] if one == node or nodes[one].is_passing else ())
            self._uses[node] = sorted(one for one in read if one != node and not nodes[one].is_passing)
        return self._uses[node]

    def _origin(self, node: int) -> int:
        while self.nodes[node].is_passing and self.inputs[node]:
            node = self.inputs[node][0]
        return node


def side_of(known: Nodes, frames: Mapping[str, pd.DataFrame], graph: str) -> Side:
    """Returns the graph of that name in `frames`, whose nodes are `known`, with parts where they were recognized."""
    table, parts = NODES.check(frames["nodes"]), _parts(frames.get("parts", PARTS.frame()), graph)
    rows = np.flatnonzero(table["graph"] == graph).tolist()
    own = zip(*(cells_in(table[name].iloc[rows]) for name in ("part_id", "role", "phase")), strict=True)
    nodes = {row: _node(known, row, *of_row) for row, of_row in zip(rows, own, strict=True)}
    side = Side(nodes, *known.among(rows), parts)
    for node in nodes.values():
        for part in side.ancestors(node.part):
            if parts[part].first_node is None:
                parts[part].first_node = node.node_id
    return side


def _node(known: Nodes, row: int, part: int | None, role: str | None, phase: str | None) -> Node:
    kind, op = known.kinds[row], known.ops[row]
    return Node(
        row, kind, op, known.does[row] if kind == "op" else kind, known.names[row], known.modules[row], part, role,
        phase, known.dtypes[row], known.shapes[row], _arguments(known.attributes[row]),
    )  # fmt: skip


@lru_cache(maxsize=1_024)
def _arguments(attributes: str | None) -> str | None:
    """Returns the arguments of an op of a recorded step, as JSON; null of other nodes."""
    given = json.loads(attributes).get("arguments") if attributes and '"arguments"' in attributes else None
    return json.dumps(given) if isinstance(given, dict) else None


def _parts(table: pd.DataFrame, graph: str) -> dict[int, Part]:
    table = PARTS.check(table)
    table = table[table["graph"] == graph]
    columns = ("part_id", "parent_id", "name", "module", "type", "role", "phase", "params")
    rows = zip(*(cells_in(table[name]) for name in columns), strict=True)
    result = {row[0]: Part(*row) for row in rows}
    for part in result.values():
        if part.parent is not None:
            result[part.parent].children.append(part.part_id)
    return result
