"""Side holds one graph of a comparison, in the form in which its nodes, tensors and parts are looked up."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import pandas as pd

from nbkit.ops.kinds import PASSING, op_kind
from nbkit.schema import EDGES, NODES, PARTS
from nbkit.step.decode import Shape, shapes_in
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


def side_of(frames: Mapping[str, pd.DataFrame], graph: str) -> Side:
    """Returns the graph of that name in `frames`, which has nodes, edges and, where they were recognized, parts."""
    table = NODES.check(frames["nodes"])
    table = table[table["graph"] == graph]
    parts = _parts(frames.get("parts", PARTS.frame()), graph)
    nodes = {row[0]: Node(*row) for row in zip(*_columns(table), strict=True)}
    inputs: dict[int, list[int]] = {node: [] for node in nodes}
    readers: dict[int, list[int]] = {node: [] for node in nodes}
    edges = EDGES.check(frames["edges"])
    for source, reader in zip(_whole(edges["src"]), edges["dst"].tolist(), strict=True):
        if source is not None and source in nodes and reader in nodes:
            inputs[reader].append(source)
            readers[source].append(reader)
    side = Side(nodes, inputs, readers, parts)
    for node in nodes.values():
        for part in side.ancestors(node.part):
            if parts[part].first_node is None:
                parts[part].first_node = node.node_id
    return side


def _columns(table: pd.DataFrame) -> list[list[object]]:
    ops, kinds = _texts(table["op"]), table["kind"].tolist()
    does = [op_kind(op) if kind == "op" else kind for op, kind in zip(ops, kinds, strict=True)]
    texts = {name: _texts(table[name]) for name in ("name", "module", "role", "phase", "dtype")}
    return [
        table["node_id"].tolist(), kinds, ops, does, texts["name"], texts["module"], _whole(table["part_id"]),
        texts["role"], texts["phase"], texts["dtype"], shapes_in(table["shape"]), _arguments(table["attributes"]),
    ]  # fmt: skip


def _arguments(attributes: pd.Series) -> list[str | None]:
    """Returns the arguments of the ops of a recorded step, as JSON; null of other nodes."""
    texts = _texts(attributes)
    known: dict[str, str] = {}
    for text in {text for text in texts if text is not None and '"arguments"' in text}:
        given = json.loads(text).get("arguments")
        if isinstance(given, dict):
            known[text] = json.dumps(given)
    return [known.get(text or "") for text in texts]


def _parts(table: pd.DataFrame, graph: str) -> dict[int, Part]:
    table = PARTS.check(table)
    table = table[table["graph"] == graph]
    texts = [_texts(table[name]) for name in ("name", "module", "type", "role", "phase")]
    columns = [table["part_id"].tolist(), _whole(table["parent_id"]), *texts, _whole(table["params"])]
    result: dict[int, Part] = {}
    for part_id, parent, name, module, kind, role, phase, params in zip(*columns, strict=True):
        result[part_id] = Part(part_id, parent, name or "", module, kind, role, phase, params)
    for part in result.values():
        if part.parent is not None:
            result[part.parent].children.append(part.part_id)
    return result


def _texts(column: "pd.Series[str]") -> list[str | None]:
    return [value if isinstance(value, str) else None for value in column.tolist()]


def _whole(column: "pd.Series[int]") -> list[int | None]:
    return [None if is_null else value for value, is_null in zip(column.tolist(), column.isna(), strict=True)]
