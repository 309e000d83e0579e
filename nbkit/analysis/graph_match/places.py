"""Where a node is, in terms that both sides share: the innermost part of it that has a partner."""

from nbkit.analysis.graph_match.pairs import Pairs
from nbkit.analysis.graph_match.side import Node, Side


class Places:
    """Of both sides the innermost paired part of each node, named by the left part_id of the pair."""

    def __init__(self, left: Side, right: Side, parts: Pairs) -> None:
        self._sides = (left, right)
        self._names = ({part: part for part in parts.right_of}, parts.left_of)
        self._known: tuple[dict[int | None, int | None], dict[int | None, int | None]] = ({}, {})

    def of(self, side: int, node: Node) -> int | None:
        """The place of a node; null where no part around it has a partner."""
        known, part = self._known[side], node.part
        if part not in known:
            names = self._names[side]
            above = self._sides[side].ancestors(part)
            known[part] = next((names[one] for one in above if one in names), None)
        return known[part]

    def inner_name(self, side: int, node: Node) -> str | None:
        """The node's name below that place; null where either has no path."""
        names = self._names[side]
        above = self._sides[side].ancestors(node.part)
        part = next((self._sides[side].parts[one] for one in above if one in names), None)
        if part is None or part.module is None or node.name is None or node.module is None:
            return None
        return node.name.removeprefix(f"{part.module}.") if part.module else node.name
