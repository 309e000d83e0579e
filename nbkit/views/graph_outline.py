"""The outline of a trace's graphs: their parts with repeats folded, one row each, for tables and text."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from nbkit.schema import NODES, PARTS
from nbkit.trace import Trace
from nbkit.views import units
from nbkit.views.names import shown

MOST_OPS = 3


@dataclass(frozen=True)
class OutlineRow:
    """A part, or a graph at depth 0; `repeats` is how many of its form stand beside each other.

    `ops` are the types of the nodes right in it and how often, `result` what the last node in it gives.
    """

    depth: int
    name: str
    repeats: int
    type: str | None
    role: str | None
    phase: str | None
    nodes: int
    params: int | None
    ops: str
    result: str | None

    @property
    def title(self) -> str:
        return f"{self.name} × {self.repeats}" if self.repeats > 1 else self.name


def outline(trace: Trace) -> Iterator[OutlineRow]:
    """The rows of all graphs, parts below what holds them; of repeats only the first is gone into."""
    nodes = NODES.check(trace.frames.get("nodes", NODES.frame()))
    parts = PARTS.check(trace.frames.get("parts", PARTS.frame()))
    known = _Outline(nodes, parts)
    for graph, rows in nodes.groupby("graph", sort=False):
        inside = rows[rows["part_id"].isna()]
        yield OutlineRow(
            depth=0, name=shown(str(graph)), repeats=1, type=None, role=None, phase=None, nodes=len(rows),
            params=None, ops=_op_counts(inside), result=_result(rows),
        )  # fmt: skip
        yield from known.below(None, str(graph), 1)


class _Outline:
    """Parts with what they hold at hand; parts that hold each other end at the second."""

    def __init__(self, nodes: pd.DataFrame, parts: pd.DataFrame) -> None:
        self.nodes, self.parts = nodes, parts
        self.inside = nodes.groupby("part_id").indices
        self.children = parts.groupby(["graph", parts["parent_id"].fillna(-1)]).indices
        self.last = self._last_nodes()
        self.seen: set[int] = set()

    def _last_nodes(self) -> dict[int, int]:
        """The last node in each part and below."""
        last = {int(part): int(rows[-1]) for part, rows in self.inside.items()}
        for part, parent in reversed(list(enumerate(self.parts["parent_id"].fillna(-1).tolist()))):
            if parent >= 0 and part in last:
                last[parent] = max(last.get(parent, -1), last[part])
        return last

    def below(self, parent: int | None, graph: str, depth: int) -> Iterator[OutlineRow]:
        rows = self.children.get((graph, -1 if parent is None else parent), np.array([], np.intp))
        forms = self.parts["repeat_of"].fillna(-1).to_numpy(np.int64)[rows].tolist()
        for part, form in zip(rows.tolist(), forms, strict=True):
            if part in self.seen or (form >= 0 and form in rows and form != part):
                continue
            self.seen.add(part)
            yield self.row(part, depth, forms.count(form) if form >= 0 else 1)
            yield from self.below(part, graph, depth + 1)

    def row(self, part: int, depth: int, repeats: int) -> OutlineRow:
        values = self.parts.iloc[part]
        texts = {name: None if pd.isna(values[name]) else shown(values[name]) for name in ("type", "role", "phase")}
        last = self.last.get(part)
        return OutlineRow(
            depth=depth,
            name=shown(values["name"]) if values["name"] else "(root)",
            repeats=repeats,
            nodes=int(values["nodes"]),
            params=None if pd.isna(values["params"]) else int(values["params"]),
            ops=_op_counts(self.nodes.iloc[self.inside.get(part, [])]),
            result=None if last is None else _result(self.nodes.iloc[[last]]),
            **texts,
        )


def _op_counts(nodes: pd.DataFrame) -> str:
    """'aten.mm × 4, aten.add, 3 others'."""
    counts = nodes.loc[nodes["kind"] == "op", "op"].fillna("unnamed").value_counts()
    few = [
        shown(str(op).removesuffix(".default"), 60) + (f" × {units.count(number)}" if number > 1 else "")
        for op, number in counts.head(MOST_OPS).items()
    ]
    rest = len(counts) - len(few)
    return ", ".join([*few, *([units.counted(rest, "other")] if rest else [])])


def _result(nodes: pd.DataFrame) -> str | None:
    """Dtype and shape of the last node's first result; null if unknown."""
    if not len(nodes):
        return None
    known = [value for value in nodes[["dtype", "shape"]].iloc[-1].tolist() if isinstance(value, str)]
    return shown(" ".join(known).replace("null", "?")) or None
