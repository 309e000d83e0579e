"""Finds the outputs that one side returns in addition, such as a cache, beside others that all agree."""

from nbkit.analysis.align.matches import Matches
from nbkit.analysis.align.side import Side


def extra_outputs(left: Side, right: Side, matches: Matches) -> tuple[frozenset[int], frozenset[int]]:
    """Returns the outputs of each side that the other one does not return, where all that the other one returns agrees.

    A gradient is no such output: where one side alone has it, the other one does not learn. Nor is what a trace has as
    its outputs, which is what nobody read.
    """
    none = frozenset[int]()
    if any(side.execution.origin == "trace" for side in (left, right)):
        return none, none
    common = _common(left, right, matches)
    extra = []
    for which, side in enumerate((left, right)):
        other, gradients = (left, right)[1 - which], set(side.execution.gradients.values())
        has_all = all(number in common[1 - which] for number in other.execution.outputs.values())
        # As many places as the other one has results: (a, b) beside (a, a) has the wrong one, not one more.
        places = sum(number in common[which] for number in side.execution.outputs.values())
        is_more = has_all and places >= len(other.execution.outputs) > 0 and not other.execution.error
        alone = (set(side.execution.outputs.values()) - common[which] - gradients) if is_more else none
        extra.append(frozenset(alone))
    return extra[0], extra[1]


def unpaired_outputs(left: Side, right: Side, matches: Matches) -> tuple[frozenset[int], frozenset[int]]:
    """Returns those of extra_outputs() that no result of the other side was compared with."""
    extra = extra_outputs(left, right, matches)
    return extra[0].difference(matches.right_of), extra[1].difference(matches.left_of)


def _common(left: Side, right: Side, matches: Matches) -> tuple[set[int], set[int]]:
    """Returns the outputs of each side that agree with one of the other side, or are a view, cast or copy of such."""
    made = _made_from(left), _made_from(right)
    common: tuple[set[int], set[int]] = set(), set()
    for match in matches.all:
        if match.agrees and match.part is None and match.left in made[0] and match.right in made[1]:
            common[0].update(made[0][match.left])
            common[1].update(made[1][match.right])
    return common


def _made_from(side: Side) -> dict[int, set[int]]:
    """Returns by result the outputs that it is, or that are views, casts or copies of it."""
    found: dict[int, set[int]] = {}
    for output in set(side.execution.outputs.values()):
        number = output
        found.setdefault(number, set()).add(output)
        while side.is_passing[number]:
            number = side.results[number].sources[0]
            found.setdefault(number, set()).add(output)
    return found
