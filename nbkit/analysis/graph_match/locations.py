"""Says where a node is, in terms that both sides share: the innermost part of it that has a partner."""

from nbkit.analysis.graph_match.pairs import Pairs
from nbkit.analysis.graph_match.side import Node, Side


class Locations:
    """Gives for both sides the innermost paired part of each node, named by the left part_id of the pair.

    A module has a part for each phase, of which perhaps only one has a partner: that one stands for all.
    """

    def __init__(self, left: Side, right: Side, parts: Pairs) -> None:
        self._sides = (left, right)
        self._names = (_names(left, {part: part for part in parts.right_of}), _names(right, parts.left_of))

    def of(self, side: int, node: Node) -> int | None:
        """Returns the location of a node; null where no part around it has a partner."""
        return None if node.part is None else self._names[side].get(node.part)

    def inner_name(self, side: int, node: Node) -> str | None:
        """Returns the node's name below that location; null where either has no path."""
        location = self.of(side, node)
        above = self._sides[side].ancestors(node.part)
        part = next(
            (self._sides[side].parts[part_id] for part_id in above if self._names[side].get(part_id) == location), None
        )
        while part is not None and part.parent is not None and self._names[side].get(part.parent) == location:
            part = self._sides[side].parts[part.parent]
        if location is None or part is None or part.module is None or node.name is None or node.module is None:
            return None
        return node.name.removeprefix(f"{part.module}.") if part.module else node.name


def _names(side: Side, paired: dict[int, int]) -> dict[int, int]:
    """Returns the location of each part that has one: its own pair, else that of its module, else what holds it has."""
    modules = {
        (part.module, part.name): paired[part_id] for part_id, part in reversed(side.parts.items()) if part_id in paired
    }
    result: dict[int, int] = {}
    for part_id, part in side.parts.items():
        name = paired.get(part_id)
        if name is None and part.module is not None:
            name = modules.get((part.module, part.name))
        if name is None and part.parent is not None:
            name = result.get(part.parent)
        if name is not None:
            result[part_id] = name
    return result
