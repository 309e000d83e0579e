"""Flow says who reads whose results in one graph, in an order in which a node comes after all that it reads."""

from collections.abc import Callable, Sequence, Set
from functools import cached_property
from heapq import heapify, heappop, heappush

from nbkit.ops.kinds import MAKERS, PRODUCTS, TRANSPARENT
from nbkit.step.nodes import Nodes
from nbkit.step.reachable import reachable

HELD = ("parameter", "buffer", "constant")


class Flow:
    """Holds some nodes of a source, by their position in it, and the edges among them.

    `shapes` are those of the first result of each, null where they are not known.
    """

    def __init__(self, source: Nodes, members: Sequence[int]) -> None:
        self.members = list(members)
        self.kinds, self.does, self.shapes = source.kinds, source.does, source.shapes
        self._ops, self._dtypes, self._attributes = source.ops, source.dtypes, source.attributes
        self.reads, self.readers = source.among(self.members)
        self.rank = self._ranked()

    def _ranked(self) -> dict[int, int]:
        """Returns location of each node in an order along the edges, as near to the file's as can be."""
        missing = {node: len(reads) for node, reads in self.reads.items()}
        ready = [node for node, count in missing.items() if not count]
        heapify(ready)
        rank: dict[int, int] = {}
        while ready:
            node = heappop(ready)
            rank[node] = len(rank)
            for reader in self.readers[node]:
                missing[reader] -= 1
                if not missing[reader]:
                    heappush(ready, reader)
        # A graph is without cycles; if a damaged file says otherwise, what is in one stands last.
        return rank | {node: len(rank) + at for at, node in enumerate(n for n in self.members if n not in rank)}

    @cached_property
    def order(self) -> list[int]:
        """Returns the nodes by rank."""
        return sorted(self.members, key=self.rank.__getitem__)

    @cached_property
    def is_held(self) -> dict[int, bool]:
        """Returns whether a node is a parameter, buffer or constant, or computed from those alone."""
        held: dict[int, bool] = {}
        for node in self.order:
            reads = self.reads[node]
            known = self.kinds[node] in HELD or (not reads and self.does[node] in MAKERS)
            held[node] = known or (bool(reads) and all(held.get(src, False) for src in reads))
        return held

    @cached_property
    def addends(self) -> dict[int, int]:
        """Returns of a node that adds one more tensor to its result, as a compiler fused it, the node that makes it."""
        marked = (node for node in self.members if "hidden_inputs" in (self._attributes[node] or ""))
        return {node: self.reads[node][-1] for node in marked if self.reads[node]}

    def op(self, node: int) -> str:
        """Returns op type of a node, as its framework calls it."""
        return self._ops[node] or ""

    def may_be_integer(self, node: int) -> bool:
        """Returns whether a node's first result holds integers, as far as is known."""
        dtype = self._dtypes[node]
        return dtype is None or "int" in dtype

    @cached_property
    def moving(self) -> dict[int, list[int]]:
        """Returns what each node reads that is not held: activations."""
        return {node: [src for src in reads if not self.is_held[src]] for node, reads in self.reads.items()}

    def origin(self, node: int) -> int:
        """Returns the node that made these values, past casts, views and copies."""
        while self.does[node] in TRANSPARENT and len(self.reads[node]) >= 1:
            moving = self.moving[node] or self.reads[node]
            node = moving[-1] if self.does[node] == "where" else moving[0]
        return node

    def origins(self, node: int) -> list[int]:
        """Returns the origin of each activation it reads."""
        return [self.origin(src) for src in self.moving[node]]

    def uses(self, node: int) -> list[int]:
        """Returns who reads its values, past casts, views and copies."""
        result, open_ = list[int](), list(self.readers[node])
        while open_:
            reader = open_.pop()
            if self.does[reader] in TRANSPARENT:
                open_.extend(self.readers[reader])
            else:
                result.append(reader)
        return result

    @cached_property
    def projections(self) -> set[int]:
        """Returns the nodes that multiply an activation by a weight matrix, or fold it with one."""
        result = set()
        for node in self.members:
            if self.does[node] in PRODUCTS:
                held = [self.is_held[src] for src in self.reads[node]]
                if any(held) and not all(held):
                    result.add(node)
        return result

    def back_to_projections(self, node: int) -> tuple[set[int], set[int]]:
        """Returns what lies between `node`, which is in it, and the nearest projections it goes back to; and these."""
        found = self._back(node, lambda here: here != node and here in self.projections)
        projections = (found & self.projections) - {node}
        between = found - projections
        kept = {node} if projections else between
        for here in sorted(between, key=self.rank.__getitem__) if projections else ():
            if any(src in projections or src in kept for src in self.reads[here]):
                kept.add(here)
        return kept, projections

    def back_through(self, node: int, words: Set[str]) -> tuple[set[int], set[int]] | None:
        """Returns the same, if nothing but nodes of these words lies between; else None."""
        found = self._back(node, lambda here: here in self.projections or self.does[here] not in words)
        between = found - self.projections
        return (between, found - between) if all(self.does[here] in words for here in between) else None

    def _back(self, node: int, is_end: Callable[[int], bool]) -> set[int]:
        """Returns the activations that a node goes back to, itself included, as far as the nearest ends."""
        starts = [] if self.is_held[node] else [node]
        return set(reachable(starts, lambda here: () if is_end(here) else self.moving[here]))

    def projected_by(self, node: int) -> list[int]:
        """Returns the projections that read its values, past casts, views and copies."""
        return [use for use in self.uses(node) if use in self.projections]

    def between(self, start: int, end: int) -> set[int]:
        """Returns `end` and all that it goes back to as far as `start`, which is not in it, or as what is older."""

        def later(nodes: Sequence[int]) -> list[int]:
            return [node for node in nodes if self.rank[node] > self.rank[start]]

        return set(reachable(later([end]), lambda node: later(self.reads[node])))
