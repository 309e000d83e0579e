"""Which part of one graph is which of another: from the top down, by name, role, size and class."""

from collections import Counter
from collections.abc import Callable, Hashable

from nbkit.analysis.graph_match.pairs import Pairs
from nbkit.analysis.graph_match.passes import groups, in_order
from nbkit.analysis.graph_match.side import Part, Side

# From the most telling to the least. Of parts below the same pair; a role or a phase never meets another one.
PASSES: tuple[tuple[str, Callable[[Part], Hashable | None]], ...] = (
    ("name", lambda part: (part.phase, part.role, part.name)),
    ("shape", lambda part: (part.phase, part.role, part.params) if part.role and part.params else None),
    ("role", lambda part: (part.phase, part.role) if part.role else None),
    ("name", lambda part: (part.phase, part.name)),
    ("structure", lambda part: (part.phase, part.type, part.params) if part.type and not part.role else None),
)


def matched_parts(left: Side, right: Side) -> Pairs:
    """Pairs of part_ids. Containers (parts without a role that hold others) are looked through, and paired last."""
    pairs = Pairs()
    waiting = [(_below(left, None), _below(right, None))]
    while waiting:
        lefts, rights = waiting.pop()
        for evidence, key in PASSES:
            lefts = [part for part in lefts if part.part_id not in pairs.right_of]
            rights = [part for part in rights if part.part_id not in pairs.left_of]
            for one, other in in_order(groups(lefts, rights, key, key)):
                if _may_meet(one, other) and pairs.add(one.part_id, other.part_id, evidence):
                    waiting.append((_below(left, one), _below(right, other)))
    _pair_containers(left, right, pairs)
    return pairs


def _may_meet(one: Part, other: Part) -> bool:
    return one.role is None or other.role is None or one.role == other.role


def _is_container(part: Part) -> bool:
    return part.role is None and bool(part.children)


def _below(side: Side, part: Part | None) -> list[Part]:
    """The nearest parts below `part` (at the top for null) that are no containers, as the step runs them."""
    waiting = part.children if part else [one.part_id for one in side.parts.values() if one.parent is None]
    found = []
    for child in waiting:
        below = side.parts[child]
        found += _below(side, below) if _is_container(below) else [below]
    last = len(side.nodes)
    return sorted(found, key=lambda one: (last if one.first_node is None else one.first_node, one.part_id))


def _pair_containers(left: Side, right: Side, pairs: Pairs) -> None:
    """Pairs a container with the one that holds the partners of most of what it holds; inner ones first."""
    for part in reversed(left.parts.values()):
        if not _is_container(part):
            continue
        held = [pairs.right_of[one.part_id] for one in _below(left, part) if one.part_id in pairs.right_of]
        free = Counter(
            above
            for other in held
            for above in right.ancestors(right.parts[other].parent)
            if _is_container(right.parts[above]) and above not in pairs.left_of
        )
        if free:
            best = max(free, key=lambda above: (free[above], right.parts[above].name == part.name, above))
            pairs.add(part.part_id, best, "name" if right.parts[best].name == part.name else "structure")
