"""Pairs the parts of two graphs: from the top down, by name, role, size and class."""

from collections.abc import Callable, Hashable

from nbkit.analysis.graph_match.pairs import Groups, Pairs, groups, if_single, in_order
from nbkit.analysis.graph_match.side import Part, Side

# Share of what two containers hold that must be the same.
MOST = 0.5
Key = Callable[[Part], Hashable | None]
Pairing = Callable[[Groups[Part]], list[tuple[Part, Part]]]
# From the most telling to the least, for parts below the same pair; a role or a phase never meets another one. Which of
# several layers of one size is which, their parameters tell.
PASSES: tuple[tuple[str, Key, Pairing], ...] = (
    ("name", lambda part: (_phase(part), part.role, part.name), in_order),
    ("name", lambda part: (_phase(part), part.name), in_order),
    ("shape", lambda part: (_phase(part), part.role, part.params) if part.role and part.params else None, in_order),
    ("role", lambda part: (_phase(part), part.role) if part.role else None, in_order),
    ("structure", lambda part: _type_and_size(part) if part.children or not part.params else None, in_order),
    ("structure", lambda part: _type_and_size(part) if not part.children and part.params else None, if_single),
)


def _type_and_size(part: Part) -> Hashable | None:
    return (_phase(part), part.type, part.params) if part.type and not part.role else None


def _phase(part: Part) -> str:
    """Returns the phase of a part; a graph that has none is a forward pass."""
    return part.phase or "forward"


def matched_parts(left: Side, right: Side) -> Pairs:
    """Pairs of part_ids. Containers (parts without a role that hold others) are looked through, and paired last."""
    pairs = Pairs()
    waiting: list[tuple[Part | None, Part | None]] = [(None, None)]
    while waiting:
        left_whole, right_whole = waiting.pop()
        waiting += _unequally_known(left, left_whole, right, right_whole, pairs)
        lefts = [part for part in _below(left, left_whole) if not _is_inside(left, part, left_whole, pairs.right_of)]
        rights = [
            part for part in _below(right, right_whole) if not _is_inside(right, part, right_whole, pairs.left_of)
        ]
        for evidence, key, pairing in PASSES:
            waiting += _paired((lefts, rights), key, pairing, evidence, pairs)
    _pair_containers(left, right, pairs)
    return pairs


def _paired(
    sides: tuple[list[Part], list[Part]], key: Key, pairing: Pairing, evidence: str, pairs: Pairs
) -> list[tuple[Part | None, Part | None]]:
    """Returns new pairs of parts of equal keys; a role never meets another one."""
    lefts = [part for part in sides[0] if part.part_id not in pairs.right_of]
    rights = [part for part in sides[1] if part.part_id not in pairs.left_of]
    return [
        (first, second)
        for first, second in pairing(groups(lefts, rights, key, key))
        if _may_meet(first, second) and pairs.add(first.part_id, second.part_id, evidence)
    ]


def _unequally_known(
    left: Side, left_whole: Part | None, right: Side, right_whole: Part | None, pairs: Pairs
) -> list[tuple[Part | None, Part | None]]:
    """Returns new pairs of parts of one name, of which only one side's role was recognized."""
    key = PASSES[1][1]
    result = _paired((_below(left, left_whole), _containers(right, right_whole)), key, in_order, "name", pairs)
    return result + _paired((_containers(left, left_whole), _below(right, right_whole)), key, in_order, "name", pairs)


def _is_inside(side: Side, part: Part, whole: Part | None, paired: dict[int, int]) -> bool:
    """Returns whether something between the part and `whole` has a partner by now."""
    above = side.ancestors(part.parent)
    between = above if whole is None else above[: above.index(whole.part_id)]
    return any(part_id in paired for part_id in between)


def _may_meet(first: Part, second: Part) -> bool:
    return first.role is None or second.role is None or first.role == second.role


def _is_container(part: Part) -> bool:
    # A numbered one is a layer, whether or not its role was recognized.
    return part.role is None and bool(part.children) and not part.name.isdecimal()


def _below(side: Side, part: Part | None) -> list[Part]:
    """Returns the nearest parts below `part` (at the top for null) that are no containers, as the step runs them."""
    parts = [child for child in _seen(side, part) if not _is_container(child)]
    # Where phases are told apart, what is of none (tensors that only wait) stands behind what runs.
    return sorted(
        parts, key=lambda child: (child.phase is None, child.first_node is None, child.first_node, child.part_id)
    )


def _containers(side: Side, part: Part | None) -> list[Part]:
    """Returns the containers that are looked through to see those parts."""
    return [child for child in _seen(side, part) if _is_container(child)]


def _seen(side: Side, part: Part | None) -> list[Part]:
    waiting = part.children if part else [child.part_id for child in side.parts.values() if child.parent is None]
    result = []
    for child in waiting:
        below = side.parts[child]
        result += [below, *(_seen(side, below) if _is_container(below) else [])]
    return result


def _pair_containers(left: Side, right: Side, pairs: Pairs) -> None:
    """Pairs containers that hold the same, for the most part: those with the most in common first."""
    held = [
        {
            left_id: _held(side, part, paired)
            for left_id, part in side.parts.items()
            if _is_container(part) and left_id not in paired
        }
        for side, paired in ((left, pairs.right_of), (right, pairs.left_of))
    ]
    candidates = []
    for left_id, mine in held[0].items():
        partners = {pairs.right_of[part] for part in mine if part in pairs.right_of}
        for right_id, theirs in held[1].items():
            common = len(partners & theirs)
            share = common / max(len(mine) + len(theirs) - common, 1)
            is_named = left.parts[left_id].name == right.parts[right_id].name
            if share >= MOST:
                candidates.append((share, is_named, left_id, right_id))
    for *_, left_id, right_id in sorted(candidates, reverse=True):
        pairs.add(left_id, right_id, "name" if left.parts[left_id].name == right.parts[right_id].name else "structure")


def pair_holders(left: Side, right: Side, parts: Pairs, states: Pairs) -> None:
    """Adds innermost parts that hold paired parameters and no others, in every phase that both have.

    `states` are pairs of parameters: one author's feed-forward is a module, the other's block holds its layers itself.
    """
    partners: tuple[dict[int, set[int]], dict[int, set[int]]] = ({}, {})
    for first, second in states.right_of.items():
        left_id, right_id = left.nodes[first].part, right.nodes[second].part
        if left_id is not None and right_id is not None:
            partners[0].setdefault(left_id, set()).add(right_id)
            partners[1].setdefault(right_id, set()).add(left_id)
    phases = [{(part.module, _phase(part)): part for part in side.parts.values()} for side in (left, right)]
    for left_id, (right_id, *others) in partners[0].items():
        ours, theirs = left.parts[left_id], right.parts[right_id]
        is_known = left_id in parts.right_of or right_id in parts.left_of
        if is_known or others or len(partners[1][right_id]) > 1 or ours.children or theirs.children:
            continue
        for (module, phase), part in phases[0].items() if ours.module is not None else ():
            partner = phases[1].get((theirs.module, phase)) if module == ours.module else None
            if partner is not None and _may_meet(part, partner):
                parts.add(part.part_id, partner.part_id, "structure")
        if _may_meet(ours, theirs):
            parts.add(left_id, right_id, "structure")


def _held(side: Side, part: Part, paired: dict[int, int]) -> set[int]:
    """Returns the nearest parts below that have a partner or are no containers."""
    result = set()
    for child in part.children:
        below = side.parts[child]
        result |= {child} if child in paired or not _is_container(below) else _held(side, below, paired)
    return result
