"""Matches what a recorded trace was given with the inputs of a run beside it: in a trace, these are constants."""

from nbkit.analysis.align.matches import Matches
from nbkit.analysis.align.matching.by_context import add_match
from nbkit.analysis.align.side import Side


def match_given(left: Side, right: Side, matches: Matches) -> None:
    """Adds matches of tensors that no op of a trace made with inputs of a run, where ops of a pair read them.

    A trace does not tell inputs from constants. Both ops do the same and read the two at the same place.
    """
    is_trace = [side.execution.origin == "trace" for side in (left, right)]
    if is_trace[0] == is_trace[1]:
        return
    kinds = ("constant", "input") if is_trace[0] else ("input", "constant")
    for match in list(matches.all):
        ours, theirs = left.results[match.left], right.results[match.right]
        if left.does[match.left] != right.does[match.right] or len(ours.sources) != len(theirs.sources):
            continue
        for first, second in zip(ours.sources, theirs.sources, strict=True):
            is_free = first not in matches.right_of and second not in matches.left_of
            is_given = (left.results[first].kind, right.results[second].kind) == kinds
            if is_free and is_given and left.numel[first] == right.numel[second]:
                add_match(left, right, first, second, "structure", matches)
