"""Matches what no value matched where both executions ran the same code: results at the same place of the same call."""

from nbkit.analysis.align.matches import Match, Matches
from nbkit.analysis.align.matching.by_context import add_match
from nbkit.analysis.align.side import Side


def match_positions(left: Side, right: Side, matches: Matches) -> None:
    """Adds matches of results at the same place of two executions that called the same ops in the same modules.

    A result is matched so where values gave it no partner, or one that has another partner already: two parameters with
    the same values at the start, of which one differs on the right.
    """
    if not is_same_code(left, right):
        return
    free = [
        set(range(len(left))) - {number for number, match in of_side.items() if _is_mutual(match, matches)}
        for of_side in (matches.right_of, matches.left_of)
    ]
    both = free[0] & free[1]
    matches.remove(match for match in matches.all if match.left in both or match.right in both)
    for number in sorted(both):
        add_match(left, right, number, number, "name", matches)


def _is_mutual(match: Match, matches: Matches) -> bool:
    return matches.right_of[match.left] is match and matches.left_of[match.right] is match


def is_same_code(left: Side, right: Side) -> bool:
    """Returns whether both have the same results: kinds, ops, modules, shapes, sources, and names of state."""
    if len(left) != len(right) or [*left.execution.outputs.values()] != [*right.execution.outputs.values()]:
        return False
    for mine, other in zip(left.results, right.results, strict=True):
        if (mine.kind, mine.op, mine.module, mine.shape, mine.sources) != (
            other.kind, other.op, other.module, other.shape, other.sources,
        ):  # fmt: skip
            return False
        if mine.kind != "op" and mine.name != other.name:
            return False
    return True
