"""Finds where a difference may begin that shows at no pair: results of one side alone that were compared in no way."""

from collections.abc import Container, Iterator

import numpy as np

from nbkit.analysis.align.errors import is_noise
from nbkit.analysis.align.matches import Matches
from nbkit.analysis.align.relations import relative_error
from nbkit.analysis.align.side import Side


def alone_in(side: Side, which: int, matches: Matches, differing: set[int], measured: Container[int]) -> Iterator[int]:
    """Yields the first results that differ and that only this side has; of activations, if there are some.

    `which` is the number of the side, `measured` are the right results whose own ops were measured. What was compared
    in another dtype, and what is nothing but rounding, differs from nothing: what is made of it is looked at in its
    place.
    """
    known = matches.of(which)
    main = {number for number in differing if side.is_main[number] and side.is_telling[number]}
    chosen = main or set(differing)
    for number in sorted(chosen):
        if number in known or not chosen.isdisjoint(side.results[number].sources):
            continue
        if _is_compared(side, which, number, matches, measured) or is_noise(side, number, known):
            chosen.discard(number)
        else:
            yield number


def _is_compared(side: Side, which: int, number: int, matches: Matches, measured: Container[int]) -> bool:
    """Returns whether what has these very elements, but for a cast, agrees with the other side or was measured.

    Where errors have grown, either of a tensor and its cast may be as near to the other side's: one is left over.
    """
    pairs = [(number, source, source) for source in side.results[number].sources[:1]]
    pairs += [(reader, number, reader) for reader in side.execution.readers[number]]
    for passing, source, one in pairs:
        match = matches.of(which).get(one)
        is_known = match is not None and match.part is None and (match.agrees or match.right in measured)
        if is_known and side.is_passing[passing] and _is_passed_on(side, passing, source):
            return True
    return False


def _is_passed_on(side: Side, passing: int, source: int) -> bool:
    """Returns whether a result is what it was made from, but for a rounding; false where values are not known."""
    values = side.value(source), side.value(passing)
    if values[0] is None or values[1] is None or values[0].size != values[1].size:
        return False
    if side.does[passing] == "permute":
        return False
    return relative_error(np.ravel(values[0]), np.ravel(values[1])) <= max(side.eps[source], side.eps[passing])
