"""Which part of one graph is which of another: from the top down, by name, role, size and class."""

from collections.abc import Callable, Hashable

from nbkit.analysis.graph_match.pairs import Pairs, groups, in_order
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
    """Returns the phase of a part; a graph that has none is a forward pass."""
    return part.phase or "forward"


def matched_parts(left: Side, right: Side) -> Pairs:
    """Pairs of part_ids. Containers (parts without a role that hold others) are looked through, and paired last."""
    pairs = Pairs()
    waiting: list[tuple[Part | None, Part | None]] = [(None, None)]
    while waiting:
        one, other = waiting.pop()
        waiting += _unequally_known(left, one, right, other, pairs)
        lefts = [part for part in _below(left, one) if not _is_inside(left, part, one, pairs.right_of)]
        rights = [part for part in _below(right, other) if not _is_inside(right, part, other, pairs.left_of)]
        for evidence, key in PASSES:
            waiting += _paired(lefts, rights, key, evidence, pairs)
    _pair_containers(left, right, pairs)
    return pairs


def _paired(
    lefts: list[Part], rights: list[Part], key: Key, evidence: str, pairs: Pairs
) -> list[tuple[Part | None, Part | None]]:
    """Returns new pairs of parts of equal keys; a role never meets another one."""
    lefts = [part for part in lefts if part.part_id not in pairs.right_of]
    rights = [part for part in rights if part.part_id not in pairs.left_of]
    return [
        (one, other)
        for one, other in in_order(groups(lefts, rights, key, key))
        if _may_meet(one, other) and pairs.add(one.part_id, other.part_id, evidence)
    ]


def _unequally_known(
    left: Side, one: Part | None, right: Side, other: Part | None, pairs: Pairs
) -> list[tuple[Part | None, Part | None]]:
    """Returns new pairs of parts of one name, of which only one side's role was recognised."""
    key = PASSES[1][1]
    found = _paired(_below(left, one), _containers(right, other), key, "name", pairs)
    return found + _paired(_containers(left, one), _below(right, other), key, "name", pairs)


def _is_inside(side: Side, part: Part, whole: Part | None, paired: dict[int, int]) -> bool:
    """Returns whether something between the part and `whole` has a partner by now."""
    above = side.ancestors(part.parent)
    between = above if whole is None else above[: above.index(whole.part_id)]
    return any(one in paired for one in between)


def _may_meet(one: Part, other: Part) -> bool:
    return one.role is None or other.role is None or one.role == other.role


def _is_container(part: Part) -> bool:
    # A numbered one is a layer, whether or not its role was recognised.
    return part.role is None and bool(part.children) and not part.name.isdecimal()


def _below(side: Side, part: Part | None) -> list[Part]:
    """Returns the nearest parts below `part` (at the top for null) that are no containers, as the step runs them."""
    found = [one for one in _seen(side, part) if not _is_container(one)]
    # Where phases are told apart, what is of none (tensors that only wait) stands behind what runs.
    return sorted(found, key=lambda one: (one.phase is None, one.first_node is None, one.first_node, one.part_id))


def _containers(side: Side, part: Part | None) -> list[Part]:
    """Returns the containers that are looked through to see those parts."""
    return [one for one in _seen(side, part) if _is_container(one)]


def _seen(side: Side, part: Part | None) -> list[Part]:
    waiting = part.children if part else [one.part_id for one in side.parts.values() if one.parent is None]
    result = []
    for child in waiting:
        below = side.parts[child]
        result += [below, *(_seen(side, below) if _is_container(below) else [])]
    return result


def _pair_containers(left: Side, right: Side, pairs: Pairs) -> None:
    """Pairs containers that hold the same, for the most part: those with the most in common first."""
    held = [
        {
            one: _held(side, part, paired)
            for one, part in side.parts.items()
            if _is_container(part) and one not in paired
        }
        for side, paired in ((left, pairs.right_of), (right, pairs.left_of))
    ]
    found = []
    for one, mine in held[0].items():
        partners = {pairs.right_of[part] for part in mine if part in pairs.right_of}
        for other, theirs in held[1].items():
            common = len(partners & theirs)
            share = common / max(len(mine) + len(theirs) - common, 1)
            is_named = left.parts[one].name == right.parts[other].name
            if share >= MOST:
                found.append((share, is_named, one, other))
    for *_, one, other in sorted(found, reverse=True):
        pairs.add(one, other, "name" if left.parts[one].name == right.parts[other].name else "structure")


def _held(side: Side, part: Part, paired: dict[int, int]) -> set[int]:
    """Returns the nearest parts below that have a partner or are no containers."""
    result = set()
    for child in part.children:
        below = side.parts[child]
        result |= {child} if child in paired or not _is_container(below) else _held(side, below, paired)
    return result
