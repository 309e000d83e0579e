"""Which part of one graph is which of another: from the top down, by name, role, size and class."""

from collections.abc import Callable, Hashable

from nbkit.analysis.graph_match.pairs import Pairs
from nbkit.analysis.graph_match.passes import groups, in_order
from nbkit.analysis.graph_match.side import Part, Side

# Share of what two containers hold that must be the same.
MOST = 0.5
Key = Callable[[Part], Hashable | None]
# From the most telling to the least, for parts below the same pair; a role or a phase never meets another one.
PASSES: tuple[tuple[str, Key], ...] = (
    ("name", lambda part: (_phase(part), part.role, part.name)),
    ("name", lambda part: (_phase(part), part.name)),
    ("shape", lambda part: (_phase(part), part.role, part.params) if part.role and part.params else None),
    ("role", lambda part: (_phase(part), part.role) if part.role else None),
    ("structure", lambda part: (_phase(part), part.type, part.params) if part.type and not part.role else None),
)


def _phase(part: Part) -> str:
    """The phase of a part; a graph that has none is a forward pass."""
    return part.phase or "forward"


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
    # A numbered one is a layer, whether or not its role was recognised.
    return part.role is None and bool(part.children) and not part.name.isdecimal()


def _below(side: Side, part: Part | None) -> list[Part]:
    """The nearest parts below `part` (at the top for null) that are no containers, as the step runs them."""
    waiting = part.children if part else [one.part_id for one in side.parts.values() if one.parent is None]
    found = []
    for child in waiting:
        below = side.parts[child]
        found += _below(side, below) if _is_container(below) else [below]
    # Where phases are told apart, what is of none (tensors that only wait) stands behind what runs.
    return sorted(found, key=lambda one: (one.phase is None, one.first_node is None, one.first_node, one.part_id))


def _pair_containers(left: Side, right: Side, pairs: Pairs) -> None:
    """Pairs containers that hold the same, for the most part: those with the most in common first."""
    held = [
        {
            part.part_id: {one.part_id for one in _below(side, part)}
            for part in side.parts.values()
            if _is_container(part)
        }
        for side in (left, right)
    ]
    found = []
    for one, mine in held[0].items():
        partners = {pairs.right_of[part] for part in mine if part in pairs.right_of}
        for other, theirs in held[1].items():
            common = len(partners & theirs)
            share = common / (len(mine) + len(theirs) - common)
            is_named = left.parts[one].name == right.parts[other].name
            if share >= MOST:
                found.append((share, is_named, one, other))
    for *_, one, other in sorted(found, reverse=True):
        pairs.add(one, other, "name" if left.parts[one].name == right.parts[other].name else "structure")
