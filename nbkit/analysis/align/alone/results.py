"""Finds where a difference may begin that shows at no pair: results of one side alone that were compared in no way."""

from collections.abc import Container

import numpy as np

from nbkit.analysis.align.allowance import is_noise
from nbkit.analysis.align.matches import Matches
from nbkit.analysis.align.relations import relative_error
from nbkit.analysis.align.side import Side


def alone_in(side: Side, which: int, matches: Matches, differing: set[int], measured: Container[int]) -> list[int]:
    """Returns the first results that differ and that only this side has; of activations, if there are some.

    `which` is the number of the side, `measured` are the right results whose own ops were measured. What was compared
    in another dtype, and what is nothing but rounding, differs from nothing: what is made of it is looked at in its
    place.
    """
    known, equal = matches.of(which), set[int]()
    main = {number for number in differing if side.is_main[number] and side.is_telling[number]}
    for group in (main, differing):
        chosen, found = group - equal, list[int]()
        for number in sorted(chosen):
            if number in known or not chosen.isdisjoint(side.results[number].sources):
                continue
            # What reads a constant says more than the constant, also that it changes nothing.
            is_read = side.results[number].kind == "constant" and bool(side.execution.readers[number])
            if is_read or _is_compared(side, which, number, matches, measured, equal) or is_noise(side, number, known):
                chosen.discard(number)
                equal.add(number)
            else:
                found.append(number)
        if chosen:
            return found
    return []


def _is_compared(
    side: Side, which: int, number: int, matches: Matches, measured: Container[int], equal: Container[int]
) -> bool:
    """Returns whether it holds the elements of a neighbor, but for a cast, that agrees or was measured, or is `equal`.

    Where errors have grown, either of a tensor and its cast may be as near to the other side's: one is left over.
    """
    for one in dict.fromkeys((*side.results[number].sources, *side.execution.readers[number])):
        match = matches.of(which).get(one)
        is_known = match is not None and match.part is None and (match.agrees or match.right in measured)
        if (is_known or one in equal) and _has_elements_of(side, number, one):
            return True
    return False


def _has_elements_of(side: Side, number: int, other: int) -> bool:
    """Returns whether neighbors have the same elements in order, but for a rounding; of permuted ones, in any order.

    False where values are not known.
    """
    values = side.value(number), side.value(other)
    if values[0] is None or values[1] is None or values[0].size != values[1].size:
        return False
    flat = [np.ravel(value) for value in values if value is not None]
    if "permute" in (side.does[number], side.does[other]):
        flat = [np.sort(value) for value in flat]
    return relative_error(*flat) <= max(side.eps[number], side.eps[other])
