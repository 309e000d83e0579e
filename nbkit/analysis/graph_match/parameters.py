"""Pairs the parameters and buffers of two graphs: by path, else by part, shape and order of use."""

from collections.abc import Callable, Hashable, Iterator
from math import inf

from nbkit.analysis.graph_match.locations import Locations
from nbkit.analysis.graph_match.pairs import Groups, Pairs, groups, if_as_many, if_single, in_order
from nbkit.analysis.graph_match.side import Node, Side
from nbkit.step.decode import Shape

OPERANDS = ("query", "key", "value")
# So many ops lie between a projection and the attention that reads it, at most: rotary embedding, norms, repeats.
MOST = 100
# So many pieces stand before the names of one side and not before those of the other, such as "model.".
PREFIXES = ((0, 0), (0, 1), (1, 0), (0, 2), (2, 0))
# Of a side (0 is the left one) and a node.
Key = Callable[[int, Node], Hashable | None]


class ParameterMatcher:
    """Finds the pairs of node_ids of parameters and buffers; done when it is made.

    `is_transposed` says whether the weights of one side's matrix products are those of the other side transposed.
    """

    def __init__(self, left: Side, right: Side, locations: Locations) -> None:
        self._sides, self._locations = (left, right), locations
        self._lefts, self._rights = _in_order_of_use(left), _in_order_of_use(right)
        self._ranks = _most_axes(left), _most_axes(right)
        self.pairs = Pairs()
        self._pair(_best_prefix(self._lefts, self._rights), in_order, "name")
        self._operands = attention_operands(left), attention_operands(right)
        self._pair(self._by_operand, if_single, "structure")
        self._pair(self._by_inner_name, in_order, "name")
        is_turned = self._agreement(self._by_turned_shape) > self._agreement(self._by_shape)
        by_shape = self._by_turned_shape if is_turned else self._by_shape
        self._pair(by_shape, if_single, "shape")
        self._pair(lambda side, node: self._with_readers(by_shape(side, node), side, node), if_single, "structure")
        # Without ops there is no order of use: of more on one side than on the other nothing says which is which.
        several = in_order if left.has_ops or right.has_ops else if_as_many
        self._pair(by_shape, several, "structure")
        self._pair(self._by_sizes, several, "structure")
        self._pair(self._by_sizes_anywhere, if_single, "shape")
        self.is_transposed = self._most_are_turned()

    def _most_are_turned(self) -> bool:
        """Returns what the weights that are not square say about those that are."""
        left, right = self._sides
        shapes = [
            (left.nodes[first].shape, right.nodes[second].shape)
            for first, second in self.pairs.right_of.items()
            if is_weight(left, left.nodes[first])
        ]
        turned = sum(first is not None and first != second and first[::-1] == second for first, second in shapes)
        return turned > sum(first is not None and first == second and first[::-1] != first for first, second in shapes)

    def _pair(self, key: Key, pairing: Callable[[Groups[Node]], list[tuple[Node, Node]]], evidence: str) -> None:
        for first, second in pairing(self._groups(key)):
            self.pairs.add(first.node_id, second.node_id, evidence)

    def _agreement(self, key: Key) -> tuple[int, int]:
        """Returns how many meet by that key, and how many of them are used at the same place in the order.

        Layers that widen and narrow again have as many equal shapes as turned ones, but in another order.
        """
        pairs = in_order(self._groups(key))
        places = [self._places(side) for side in (0, 1)]
        return len(pairs), sum(places[0][first.node_id] == places[1][second.node_id] for first, second in pairs)

    def _places(self, side: int) -> dict[int, int]:
        """Returns which weight of its location each one is, in the order of use; the same of what is no weight."""
        counts: dict[Hashable, int] = {}
        places = {}
        for node in (self._lefts, self._rights)[side]:
            group = (self._location(side, node), node.kind, is_weight(self._sides[side], node))
            places[node.node_id] = counts[group] = counts.get(group, -1) + 1
        return places

    def _groups(self, key: Key) -> Groups[Node]:
        lefts = [node for node in self._lefts if node.node_id not in self.pairs.right_of]
        rights = [node for node in self._rights if node.node_id not in self.pairs.left_of]
        return groups(lefts, rights, lambda node: key(0, node), lambda node: key(1, node))

    def _by_operand(self, side: int, node: Node) -> Hashable | None:
        """Returns where it makes the queries, keys or values of attention; of some authors keys come first."""
        location, operand = self._location(side, node), self._operands[side].get(node.node_id)
        return None if None in (location, operand, node.shape) else (location, operand, len(node.shape or ()))

    def _by_inner_name(self, side: int, node: Node) -> Hashable | None:
        location, name = self._location(side, node), self._locations.inner_name(side, node)
        return None if location is None or name is None else (location, name)

    def _by_shape(self, side: int, node: Node) -> Hashable | None:
        location = self._location(side, node)
        role = self._role(side, node)
        return (
            None if location is None or node.shape is None else (location, node.kind, _without_ones(node.shape), role)
        )

    def _by_turned_shape(self, side: int, node: Node) -> Hashable | None:
        key = self._by_shape(side, node)
        if side == 1 or key is None or node.shape is None or not is_weight(self._sides[side], node):
            return key
        return (self._location(side, node), node.kind, node.shape[::-1], self._role(side, node))

    def _with_readers(self, key: Hashable | None, side: int, node: Node) -> Hashable | None:
        """Returns the key with what the node's readers do, and what reads these: a gate goes into an activation."""
        graph = self._sides[side]
        readers = graph.uses(node.node_id)
        behind = {graph.nodes[use].does for reader in readers for use in graph.uses(reader)}
        return None if key is None else (key, *sorted({graph.nodes[use].does for use in readers}), *sorted(behind))

    def _by_sizes(self, side: int, node: Node) -> Hashable | None:
        location, sizes = self._location(side, node), _sizes(node.shape)
        return None if location is None or sizes is None else (location, node.kind, sizes, self._role(side, node))

    def _by_sizes_anywhere(self, side: int, node: Node) -> Hashable | None:
        sizes = _sizes(node.shape)
        return None if sizes is None else (sizes, self._role(side, node))

    def _role(self, side: int, node: Node) -> Hashable | None:
        """Returns what it is to the module that holds it, where no op of either graph reads it: null where one may.

        A bias beside a matrix is another thing than the gain or the bias of a norm, whatever their shapes.
        """
        if self._sides[0].has_ops or self._sides[1].has_ops:
            return None
        name = (node.name or "").rpartition(".")[2]
        return self._ranks[side].get(node.module, 0), name == "bias", is_weight(self._sides[side], node)

    def _location(self, side: int, node: Node) -> int | None:
        """Returns where it is, or where it is used first: some sources name parameters apart from what uses them."""
        location = self._locations.of(side, node)
        uses = self._sides[side].uses(node.node_id) if location is None else []
        return self._locations.of(side, self._sides[side].nodes[uses[0]]) if uses else location


def _most_axes(side: Side) -> dict[str | None, int]:
    """Returns by module how many axes what it holds has at most: 1 of a norm, 2 of a linear layer."""
    found: dict[str | None, int] = {}
    for node in side.nodes.values():
        if node.is_state and node.shape is not None:
            found[node.module] = max(found.get(node.module, 0), len(node.shape))
    return found


def is_weight(side: Side, node: Node) -> bool:
    """Returns whether it is a matrix that something other than a lookup of rows reads."""
    if node.shape is None or len(node.shape) != 2:
        return False
    return side.role_around(node) != "embedding" and all(
        side.nodes[use].does != "embedding" for use in side.uses(node.node_id)
    )


def _in_order_of_use(side: Side) -> list[Node]:
    states = [node for node in side.nodes.values() if node.is_state]
    first = {node.node_id: next(iter(side.uses(node.node_id)), inf) for node in states}
    return sorted(states, key=lambda node: (first[node.node_id], node.node_id))


def _best_prefix(lefts: list[Node], rights: list[Node]) -> Key:
    """Returns names without the pieces that only one side has before them, by which most of them are equal."""
    names = [[node.name.split(".") for node in nodes if node.name] for nodes in (lefts, rights)]

    def common(cut: tuple[int, int]) -> int:
        left, right = ({tuple(name[count:]) for name in side} for side, count in zip(names, cut, strict=True))
        return len((left & right) - {()})

    best = max(PREFIXES, key=common)
    return lambda side, node: tuple(node.name.split(".")[best[side] :]) or None if node.name else None


def _without_ones(shape: Shape) -> Shape:
    return tuple(size for size in shape if size != 1)


def _sizes(shape: Shape | None) -> Hashable | None:
    return None if shape is None else tuple(sorted((size or 0) for size in _without_ones(shape)))


def attention_operands(side: Side) -> dict[int, str]:
    """Returns the operand by node_id of the parameters that make one alone; a joint projection makes several."""
    found: dict[int, set[str]] = {}
    for node in side.nodes.values():
        if node.phase in (None, "forward"):
            for operand, source in _operands(side, node):
                for parameter in _parameters_behind(side, source):
                    found.setdefault(parameter, set()).add(operand)
    return {parameter: next(iter(operands)) for parameter, operands in found.items() if len(operands) == 1}


def _operands(side: Side, node: Node) -> Iterator[tuple[str, int]]:
    """Yields what a fused attention reads, or what the products around a softmax do."""
    if node.does == "attention":
        yield from zip(OPERANDS, side.sources(node.node_id), strict=False)
    elif node.does == "softmax":
        scores = next(_products_behind(side, node.node_id), None)
        if scores is None or any(side.nodes[source].is_state for source in side.sources(scores)):
            return  # that of a router or of a head
        yield from zip(OPERANDS, side.sources(scores), strict=False)
        for use in side.uses(node.node_id):
            if side.nodes[use].does == "matmul":
                yield from ((OPERANDS[2], source) for source in side.sources(use) if source != node.node_id)


def _products_behind(side: Side, start: int) -> Iterator[int]:
    """Yields the matrix products that an op reads the results of, by way of other ops, the nearest first."""
    waiting, met = [start], {start}
    while waiting and len(met) < MOST:
        for source in side.sources(waiting.pop(0)):
            if source in met:
                continue
            met.add(source)
            if side.nodes[source].does == "matmul":
                yield source
            else:
                waiting.append(source)


def _parameters_behind(side: Side, source: int) -> list[int]:
    """Returns the parameters of the projections that an operand comes from."""
    products = [source] if side.nodes[source].does == "matmul" else _products_behind(side, source)
    read = [parameter for product in products for parameter in side.sources(product)]
    return [parameter for parameter in read if side.nodes[parameter].kind == "parameter"]
