"""The rows of the frame `correspondence` from the pairs of two graphs."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from nbkit.analysis.graph_match.pairs import Pairs
from nbkit.analysis.graph_match.parameters import is_weight
from nbkit.analysis.graph_match.relations import difference, relation_of
from nbkit.analysis.graph_match.side import Node, Part, Shape, Side

Row = dict[str, Any]
Thing = TypeVar("Thing", Part, Node)
# What an op that stands on one side only does to its tensor.
ALONE = {"cast": "cast", "permute": "permute", "reshape": "reshape", "expand": "reshape"}


@dataclass(frozen=True)
class Found:
    """All that was found of two graphs; `is_transposed` as in ParameterMatcher."""

    left: Side
    right: Side
    parts: Pairs
    nodes: Pairs
    is_transposed: bool

    def rows(self) -> Iterator[Row]:
        """Rows of parts, then of parameters, then of ops."""
        for left, right in _merged(_parts(self.left), _parts(self.right), self.parts):
            yield self._part_row(left, right)
        for is_state in (True, False):
            sides = (
                [(node.node_id, node) for node in side.nodes.values() if node.is_state is is_state and _counts(node)]
                for side in (self.left, self.right)
            )
            for one, other in _merged(*sides, self.nodes):
                yield self._node_row("parameter" if is_state else "op", one, other)

    def _part_row(self, left: Part | None, right: Part | None) -> Row:
        row = {"level": "part", **_partners(left and left.part_id, right and right.part_id, self.parts)}
        for side, part in (("left", left), ("right", right)):
            if part is not None:
                row |= {f"{side}_name": part.module or part.name, f"{side}_op": part.type}
                row["role"] = row.get("role") or part.role
                row["phase"] = row.get("phase") or part.phase
        if left and right and left.params and right.params and left.params != right.params:
            row["message"] = f"{left.params:,} parameters on the left, {right.params:,} on the right"
        return row

    def _node_row(self, level: str, left: Node | None, right: Node | None) -> Row:
        row = {"level": level, **_partners(left and left.node_id, right and right.node_id, self.nodes)}
        for name, side, node in (("left", self.left, left), ("right", self.right, right)):
            if node is not None:
                texts = {"name": node.name, "shape": _text(node.shape), "dtype": node.dtype, "op": node.op}
                row |= {f"{name}_{column}": text for column, text in texts.items()}
                row["role"] = row.get("role") or node.role or role_around(side, node)
                row["phase"] = row.get("phase") or node.phase
        if left and right:
            is_turned = self.is_transposed and left.is_state and is_weight(self.left, left)
            row["relation"] = relation_of(left, right, is_turned=is_turned)
            row["message"] = difference(left, right, is_turned=is_turned)
        elif level == "op" and (alone := left or right):
            row["relation"] = ALONE.get(alone.does)
        return row


def role_around(side: Side, node: Node) -> str | None:
    """The role of the innermost part around a node that has one."""
    return next((role for one in side.ancestors(node.part) if (role := side.parts[one].role)), None)


def _counts(node: Node) -> bool:
    return node.kind != "module"


def _parts(side: Side) -> list[tuple[int, Part]]:
    return list(side.parts.items())


def _partners(left: int | None, right: int | None, pairs: Pairs) -> Row:
    action = "match" if left is not None and right is not None else "right_only" if left is None else "left_only"
    evidence = pairs.evidence[left] if left is not None and action == "match" else None
    return {"left_id": left, "right_id": right, "action": action, "evidence": evidence}


def _merged(
    left: Iterable[tuple[int, Thing]], right: Sequence[tuple[int, Thing]], pairs: Pairs
) -> Iterator[tuple[Thing | None, Thing | None]]:
    """Pairs and what has no partner, in the order of the left; what only the right has, behind what is before it."""
    known = dict(right)
    behind: dict[int | None, list[Thing]] = {}
    last = None
    for name, thing in right:
        if name in pairs.left_of:
            last = name
        else:
            behind.setdefault(last, []).append(thing)
    yield from ((None, thing) for thing in behind.get(None, ()))
    for name, thing in left:
        partner = pairs.right_of.get(name)
        yield thing, None if partner is None else known[partner]
        if partner is not None:
            yield from ((None, one) for one in behind.get(partner, ()))


def _text(shape: Shape | None) -> str | None:
    return None if shape is None else json.dumps(list(shape))
