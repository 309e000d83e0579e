"""Pairs the ops of two graphs: by name, from paired parameters along the dataflow, and by order."""

from collections.abc import Callable, Hashable
from math import prod

from nbkit.analysis.graph_match.locations import Locations
from nbkit.analysis.graph_match.pairs import Groups, Pairs, groups, if_as_many, if_single, in_order
from nbkit.analysis.graph_match.sequences import follow, pairs_between
from nbkit.analysis.graph_match.side import Node, Side
from nbkit.ops.kinds import ARITHMETIC

# Graphs of one source call their ops the same; in others a name such as "mul_3" says nothing.
SAME_SOURCE_FRACTION = 0.8
_INTERFACE: tuple[Callable[[Node], Hashable | None], ...] = (
    lambda node: (node.kind, node.shape, node.dtype),
    lambda node: (node.kind, node.shape),
    lambda node: (node.kind, node.dtype),
    lambda node: node.kind if node.kind == "output" else None,
)
Form = Callable[[int, Node], Hashable]
Pairing = Callable[[Groups[Node]], list[tuple[Node, Node]]]


def match_ops(left: Side, right: Side, locations: Locations, pairs: Pairs) -> None:
    """Adds the pairs of node_ids of ops, inputs, outputs and constants; `pairs` has those of parameters and buffers."""
    if not _by_name(left, right, pairs):
        _OpMatcher(left, right, locations, pairs).run()


def _by_name(left: Side, right: Side, pairs: Pairs) -> bool:
    """Returns whether both graphs are of one source, so that names alone decide; the ops are paired then.

    Names of ops that only count, as in recorded steps, are equal in other models, too, but not those of modules.
    """
    lefts, rights = ([node for node in side.nodes.values() if not node.is_state] for side in (left, right))
    named = [
        (first.node_id, second.node_id)
        for first, second in in_order(groups(lefts, rights, lambda node: node.name, lambda node: node.name))
        if first.does == second.does and (first.module == second.module or None in (first.module, second.module))
    ]
    is_same_source = len(named) >= SAME_SOURCE_FRACTION * min(len(lefts), len(rights)) > 0
    if is_same_source:
        pairs.add_all(named, "name")
    return is_same_source


class _OpMatcher:
    """Finds pairs by dataflow and order."""

    def __init__(self, left: Side, right: Side, locations: Locations, pairs: Pairs) -> None:
        self._sides, self._locations, self._pairs = (left, right), locations, pairs
        self._is_of_one_size = False

    def run(self) -> None:
        """Adds what is found to the pairs that are known."""
        self._interface()
        self._is_of_one_size = self._have_equal_inputs()
        # What is told by its neighbors, too, first: one op too many on one side would shift all behind it.
        self._follow(self._form_among_neighbours, if_single)
        self._by_order()
        for form, pairing in ((self._form, if_single), (self._form, if_as_many), (self._loose_form, if_single)):
            self._follow(form, pairing)
        self._by_order()

    def _interface(self) -> None:
        """Pairs inputs with inputs and outputs with outputs: of one shape and dtype, then of one of the two."""
        for key in _INTERFACE:
            lefts, rights = (
                [n for n in side.nodes.values() if n.kind in ("input", "output") and n.node_id not in taken]
                for side, taken in zip(self._sides, (self._pairs.right_of, self._pairs.left_of), strict=True)
            )
            for first, second in in_order(groups(lefts, rights, key, key)):
                self._pairs.add(first.node_id, second.node_id, "structure")

    def _have_equal_inputs(self) -> bool:
        """Returns whether both graphs were given tensors of equal shapes: then equal ops give as many elements."""
        lefts, rights = (
            sorted(str(node.shape) for node in side.nodes.values() if node.kind == "input" and node.shape is not None)
            for side in self._sides
        )
        return bool(lefts) and lefts == rights

    def _size(self, node: Node) -> int | None:
        if not self._is_of_one_size or node.shape is None or None in node.shape:
            return None
        return prod(size or 0 for size in node.shape)

    def _follow(self, form: Form, pairing: Pairing) -> None:
        """Pairs what reads and what makes the tensors of a pair, as long as it is of one form on both sides."""
        follow(self._pairs.right_of.items(), lambda left, right: self._around(left, right, form, pairing))

    def _around(self, left: int, right: int, form: Form, pairing: Pairing) -> list[tuple[int, int]]:
        """Returns the new pairs of what reads and what makes the tensors of a pair."""
        return [
            pair
            for look in (Side.uses, Side.sources)
            for pair in self._alike(look(self._sides[0], left), look(self._sides[1], right), form, pairing)
        ]

    def _alike(self, lefts: list[int], rights: list[int], form: Form, pairing: Pairing) -> list[tuple[int, int]]:
        """Returns the new pairs of two lists of neighbors."""
        left_nodes, right_nodes = self._free(0, lefts), self._free(1, rights)
        if not (left_nodes and right_nodes):
            return []
        matches = pairing(groups(left_nodes, right_nodes, lambda node: form(0, node), lambda node: form(1, node)))
        return self._pairs.add_all(((first.node_id, second.node_id) for first, second in matches), "structure")

    def _free(self, side: int, nodes: list[int]) -> list[Node]:
        taken = self._pairs.left_of if side else self._pairs.right_of
        known = self._sides[side].nodes
        return [
            known[node_id] for node_id in dict.fromkeys(nodes) if node_id not in taken and known[node_id].kind == "op"
        ]

    def _form(self, side: int, node: Node) -> Hashable:
        """Returns what it does and where, with how many tensors and which paired parameters."""
        return (
            node.does,
            node.phase or "forward",
            self._locations.of(side, node),
            len(self._sides[side].inputs[node.node_id]),
            self._size(node),
            self._states(side, node),
        )

    def _states(self, side: int, node: Node) -> tuple[int, ...]:
        """Returns the parameters that it reads and that have a partner, by their left node_ids."""
        read = self._sides[side].sources(node.node_id)
        names = (self._pairs.left_of.get(one) if side else one if one in self._pairs.right_of else None for one in read)
        nodes = self._sides[0].nodes
        return tuple(sorted(name for name in names if name is not None and nodes[name].is_state))

    def _form_among_neighbours(self, side: int, node: Node) -> Hashable:
        """Returns the same, with the shape of its result and what those do that it reads from and that read it."""
        graph = self._sides[side]
        before, behind = (
            [graph.nodes[node_id].does for node_id in neighbours]
            for neighbours in (graph.sources(node.node_id), graph.uses(node.node_id))
        )
        return (self._form(side, node), node.shape, tuple(before), tuple(sorted(behind)))

    def _loose_form(self, side: int, node: Node) -> Hashable:
        """Returns what it does and where; one kind of arithmetic for another."""
        does = "arithmetic" if node.does in ARITHMETIC else node.does
        return (does, node.phase or "forward", self._locations.of(side, node), self._size(node))

    def _by_order(self) -> None:
        """Pairs what is left of each location in the order in which it stands, between what is paired already.

        Inner locations come first: what a block does with the results of its layers is told by whose results they are.
        """
        lefts, rights = (self._sequences(side) for side in (0, 1))
        for location, left_ids in sorted(lefts.items(), key=lambda item: -self._depth(item[0][0])):
            both = left_ids, rights.get(location, [])
            for left, right in pairs_between(both, self._pairs.right_of, self._pairs.left_of, self._form_of):
                if self._may_meet(left, right):
                    self._pairs.add(left, right, "structure")

    def _form_of(self, side: int, node_id: int) -> Hashable:
        return self._form(side, self._sides[side].nodes[node_id])

    def _depth(self, location: int | None) -> int:
        return len(self._sides[0].ancestors(location))

    def _sequences(self, side: int) -> dict[tuple[int | None, str], list[int]]:
        result: dict[tuple[int | None, str], list[int]] = {}
        for node in self._sides[side].nodes.values():
            if node.kind in ("op", "constant"):
                result.setdefault((self._locations.of(side, node), node.phase or "forward"), []).append(node.node_id)
        return result

    def _may_meet(self, left: int, right: int) -> bool:
        """Returns whether not all around them that is paired already says that they are different ops."""
        agrees = []
        for look in (Side.sources, Side.uses):
            partners = {self._pairs.right_of.get(node_id) for node_id in look(self._sides[0], left)} - {None}
            neighbours = {node_id for node_id in look(self._sides[1], right) if node_id in self._pairs.left_of}
            if partners and neighbours:
                agrees.append(bool(partners & neighbours))
        # A view or a cast is one of what it reads, whatever it is read by.
        is_passing = self._sides[0].nodes[left].is_passing or self._sides[1].nodes[right].is_passing
        return all(agrees) if is_passing else any(agrees) or len(agrees) < 2
