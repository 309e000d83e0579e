"""The outline of a trace's graphs: their parts with repeats folded, one row each, for tables and text."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pandas as pd

from nbkit import units
from nbkit.schema import NODES, PARTS
from nbkit.step.decode import cells_in
from nbkit.trace.trace import Trace
from nbkit.views.summary.names import shown

MOST_OPS = 3


@dataclass(frozen=True)
class OutlineRow:
    """A part, or a graph at depth 0; `repeats` is how many of its form stand beside each other.

    `ops` are the types of its direct nodes and how often, `result` what the last node in it gives.
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
    """Yields the rows of all graphs, parts below what holds them; only the first of repeated parts is opened."""
    nodes = NODES.check(trace.frames.get("nodes", NODES.frame()))
    known = _Outline(nodes, PARTS.check(trace.frames.get("parts", PARTS.frame())))
    for graph, few in nodes.groupby("graph", sort=False):
        rows = few["node_id"].tolist()
        outside = [row for row in rows if known.holder[row] < 0]
        yield OutlineRow(
            depth=0, name=shown(str(graph)), repeats=1, type=None, role=None, phase=None, nodes=len(rows),
            params=None, ops=known.op_counts(outside), result=known.result(rows[-1]),
        )  # fmt: skip
        yield from known.below(-1, str(graph), 1)


class _Outline:
    """Parts with what they hold at hand, as lists; parts that hold each other end at the second."""

    def __init__(self, nodes: pd.DataFrame, parts: pd.DataFrame) -> None:
        self.nodes = {name: nodes[name].tolist() for name in ("kind", "op", "dtype", "shape")}
        self.parts = {str(name): cells_in(parts[name]) for name in parts}
        self.holder: list[int] = nodes["part_id"].fillna(-1).tolist()
        self.inside: dict[int, list[int]] = {}
        for row, part in enumerate(self.holder):
            self.inside.setdefault(part, []).append(row)
        self.children: dict[tuple[str, int], list[int]] = {}
        for part, (graph, parent) in enumerate(zip(self.parts["graph"], self.parts["parent_id"], strict=True)):
            self.children.setdefault((graph, -1 if parent is None else parent), []).append(part)
        self.last = self._last_nodes()
        self.seen: set[int] = set()

    def _last_nodes(self) -> dict[int, int]:
        """Returns the last node in each part and below; children come after what holds them."""
        last = {part: rows[-1] for part, rows in self.inside.items()}
        for part, parent in reversed(list(enumerate(self.parts["parent_id"]))):
            if parent is not None and part in last:
                last[parent] = max(last.get(parent, -1), last[part])
        return last

    def below(self, parent: int, graph: str, depth: int) -> Iterator[OutlineRow]:
        beside = self.children.get((graph, parent), [])
        forms = Counter(self.parts["repeat_of"][part] for part in beside)
        listed = set[int]()
        for part in beside:
            form = self.parts["repeat_of"][part]
            if part in self.seen or form in listed:
                continue
            listed |= {form} if form is not None else set()
            self.seen.add(part)
            yield self.row(part, depth, 1 if form is None else forms[form])
            yield from self.below(part, graph, depth + 1)

    def row(self, part: int, depth: int, repeats: int) -> OutlineRow:
        values = {name: column[part] for name, column in self.parts.items()}
        texts = {name: values[name] and shown(values[name]) for name in ("type", "role", "phase")}
        last = self.last.get(part)
        return OutlineRow(
            depth=depth,
            name=shown(values["name"]) or "(root)",
            repeats=repeats,
            nodes=values["nodes"],
            params=values["params"],
            ops=self.op_counts(self.inside.get(part, [])),
            result=None if last is None else self.result(last),
            **texts,
        )

    def op_counts(self, rows: Iterable[int]) -> str:
        """Lists the ops of a part: 'aten.mm × 4, aten.add, 3 others'."""
        kinds, ops = self.nodes["kind"], self.nodes["op"]
        counts = Counter(ops[row] if isinstance(ops[row], str) else "unnamed" for row in rows if kinds[row] == "op")
        few = [
            shown(op.removesuffix(".default"), 60) + (f" × {units.count(number)}" if number > 1 else "")
            for op, number in counts.most_common(MOST_OPS)
        ]
        rest = len(counts) - len(few)
        return ", ".join([*few, *([units.counted(rest, "other")] if rest else [])])

    def result(self, row: int) -> str | None:
        """Returns the dtype and shape of a node's first result; null if unknown."""
        known = [self.nodes[name][row] for name in ("dtype", "shape")]
        return shown(" ".join(text for text in known if isinstance(text, str)).replace("null", "?")) or None
