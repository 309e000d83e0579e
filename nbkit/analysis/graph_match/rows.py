"""Makes the rows of the frame `correspondence` from the pairs of two graphs."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from nbkit.analysis.graph_match.pairs import Pairs
from nbkit.analysis.graph_match.parameters import is_weight
from nbkit.analysis.graph_match.side import Node, Side
from nbkit.divergence.arguments import in_words, other_arguments
from nbkit.divergence.columns import action_of, shape_relation, tensor_relation
from nbkit.graphs.rows import json_text
from nbkit.step.decode import Shape

Thing = TypeVar("Thing")
Row = dict[str, Any]
# What an op that stands on one side only does to its tensor.
ALONE = {"cast": "cast", "permute": "permute", "reshape": "reshape", "expand": "reshape"}


@dataclass(frozen=True)
class MatchedGraphs:
    """Holds two graphs with the pairs of their parts and nodes; `is_transposed` as in ParameterMatcher."""

    left: Side
    right: Side
    parts: Pairs
    nodes: Pairs
    is_transposed: bool

    def rows(self) -> Iterator[Row]:
        """Yields rows of parts, of parameters, of other state, then of ops; these only if both sides have some."""
        for ids in _merged(list(self.left.parts), list(self.right.parts), self.parts):
            yield self._part_row(*ids)
        for level in ("parameter", "state", "op"):
            lefts, rights = (
                [name for name, node in side.nodes.items() if node.kind != "module" and _level(node) == level]
                for side in (self.left, self.right)
            )
            if level == "op" and not (lefts and rights):
                continue
            for ids in _merged(lefts, rights, self.nodes):
                yield self._node_row(level, *ids)

    def _part_row(self, left_id: int | None, right_id: int | None) -> Row:
        row = {"level": "part", **_partners(left_id, right_id, self.parts)}
        left, right = _of(self.left.parts, left_id), _of(self.right.parts, right_id)
        for side, part in (("left", left), ("right", right)):
            if part is not None:
                row |= {f"{side}_name": part.module or part.name, f"{side}_op": part.type}
                row["role"] = row.get("role") or part.role
                row["phase"] = row.get("phase") or part.phase
        if left and right and left.params and right.params and left.params != right.params:
            row["message"] = f"{left.params:,} parameters on the left, {right.params:,} on the right"
        return row

    def _node_row(self, level: str, left_id: int | None, right_id: int | None) -> Row:
        row = {"level": level, **_partners(left_id, right_id, self.nodes)}
        left, right = _of(self.left.nodes, left_id), _of(self.right.nodes, right_id)
        for name, side, node in (("left", self.left, left), ("right", self.right, right)):
            if node is not None:
                texts = {"name": node.name, "shape": _text(node.shape), "dtype": node.dtype, "op": node.op}
                row |= {f"{name}_{column}": text for column, text in texts.items()}
                row["role"] = row.get("role") or side.role_around(node)
                row["phase"] = row.get("phase") or node.phase
        if left and right:
            is_turned = self.is_transposed and left.is_state and is_weight(self.left, left)
            row["relation"] = relation_of(left, right, is_turned=is_turned)
            row["message"] = difference(left, right, is_turned=is_turned)
            if row["relation"] == "same" and self._is_of_shape_alone(left, row["evidence"]):
                row["relation"] = "other"
        elif level == "op" and (alone := left or right):
            row["relation"] = ALONE.get(alone.does)
        return row

    def _is_of_shape_alone(self, left: Node, evidence: str | None) -> bool:
        """Returns whether nothing but shapes pairs a parameter or the parts that hold it: no path, no op."""
        if not left.is_state or self.left.has_ops or self.right.has_ops:
            return False
        by_part = self.parts.evidence.get(left.part) if left.part is not None else None
        return evidence != "name" or by_part == "shape"


def _of(things: Mapping[int, Thing], name: int | None) -> Thing | None:
    return None if name is None else things[name]


def _level(node: Node) -> str:
    if not node.is_state:
        return "op"
    return "state" if node.kind == "buffer" and node.module is None else "parameter"


def _partners(left: int | None, right: int | None, pairs: Pairs) -> Row:
    evidence = pairs.evidence.get(left) if left is not None else None
    return {"left_id": left, "right_id": right, "action": action_of(left, right), "evidence": evidence}


def _merged(left: list[int], right: list[int], pairs: Pairs) -> Iterator[tuple[int | None, int | None]]:
    """Pairs and ids without a partner, in the order of the left; one of the right alone behind what is before it."""
    behind: dict[int | None, list[int]] = {}
    last = None
    for item in right:
        if item in pairs.left_of:
            last = item
        else:
            behind.setdefault(last, []).append(item)
    yield from ((None, item) for item in behind.get(None, ()))
    for item in left:
        partner = pairs.right_of.get(item)
        yield item, partner
        if partner is not None:
            yield from ((None, item) for item in behind.get(partner, ()))


def _text(shape: Shape | None) -> str | None:
    return None if shape is None else json_text(shape)


def relation_of(left: Node, right: Node, *, is_turned: bool = False) -> str:
    """Returns same, cast, permute, reshape or other; `is_turned` for a square matrix that is known to be transposed."""
    if is_turned and shape_relation(left.shape, right.shape) == "same":
        return "permute"
    return tensor_relation(left.shape, right.shape, (left.dtype, right.dtype))


def difference(left: Node, right: Node, *, is_turned: bool = False) -> str | None:
    """Returns what differs between tensors and arguments, in words; null if nothing that is known."""
    sentences = []
    if is_turned and left.shape == right.shape:
        sentences.append("square, and transposed as the other weights of these graphs")
    elif shape_relation(left.shape, right.shape) == "permute":
        sentences.append("transposed" if len(left.shape or ()) == 2 else "permuted")
    if left.shape is not None and right.shape is not None and left.shape != right.shape:
        sentences.append(f"{_relation_text(left.shape)} on the left, {_relation_text(right.shape)} on the right")
    if left.dtype and right.dtype and left.dtype != right.dtype:
        sentences.append(f"{left.dtype} on the left, {right.dtype} on the right")
    if left.op == right.op and (others := other_arguments(left.arguments, right.arguments)):
        sentences.append(in_words(others))
    return "; ".join(sentences) or None


def _relation_text(shape: Shape) -> str:
    return f"[{', '.join('?' if size is None else str(size) for size in shape)}]"
