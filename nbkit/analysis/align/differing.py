"""Finds the results of each side that differ to the end: the other side has them nowhere, nor anything made of them."""

from nbkit.analysis.align.alone.outputs import extra_outputs
from nbkit.analysis.align.matches import Matches
from nbkit.analysis.align.side import Side

SLICING = ("slice", "split")


def differing(left: Side, right: Side, matches: Matches) -> tuple[set[int], set[int]]:
    """Returns the results of each side that differ.

    A result that leads to one that agrees is another way to the same; one that leads to no output changes nothing. That
    a part agrees is no good end for the whole where another part differs; that an output agrees which proves nothing,
    such as a loss, is a good end for what is made of results that agree alone. What one side returns in addition to
    results that agree differs from nothing.
    """
    extra = extra_outputs(left, right, matches)
    return _differing(left, matches, 0, extra[0]), _differing(right, matches, 1, extra[1])


def _differing(side: Side, matches: Matches, which: int, extra: frozenset[int]) -> set[int]:
    agreeing = {match.right if which else match.left for match in matches.all if match.agrees}
    as_whole = {match.right if which else match.left for match in matches.all if match.agrees and match.part is None}
    found: set[int] = set()
    leads, ends = [False] * len(side), set(side.execution.outputs.values()) - extra
    reaches, is_clean = _reaches(side, agreeing, ends), _clean(side, agreeing, set(matches.of(which)))
    for number in reversed(range(len(side))):
        readers = side.execution.readers[number]
        if any(reader in found and side.does[reader] in SLICING for reader in readers):
            agrees = number in as_whole
            onward = [reader for reader in readers if side.does[reader] not in SLICING]
        else:
            agrees, onward = number in agreeing, list(readers)
        if not ends.isdisjoint(readers):
            ends.add(number)
        # Of what proves nothing (a mask, a scalar) equal values are taken for what they are, but not for a good end;
        # nor are those of what nobody reads, such as the mean that a norm returns beside its result.
        is_proof = agrees and bool(side.is_telling[number]) and number in ends
        leads[number] = is_proof or any(leads[reader] for reader in onward)
        is_another_way = leads[number] or (reaches[number] and is_clean[number])
        if not agrees and not is_another_way and side.has_features[number] and number in ends:
            found.add(number)
    return found


def _reaches(side: Side, agreeing: set[int], ends: set[int]) -> list[bool]:
    """Returns whether a result is made into outputs that all agree; into one at least."""
    outputs = set(ends)
    good, bad = [False] * len(side), [False] * len(side)
    for number in reversed(range(len(side))):
        readers = side.execution.readers[number]
        good[number] = (number in outputs and number in agreeing) or any(good[reader] for reader in readers)
        bad[number] = (number in outputs and number not in agreeing) or any(bad[reader] for reader in readers)
    return [one and not other for one, other in zip(good, bad, strict=True)]


def _clean(side: Side, agreeing: set[int], matched: set[int]) -> list[bool]:
    """Returns whether a result agrees, or is made of such alone, with numbers and masks that prove nothing."""
    found: list[bool] = []
    for number, result in enumerate(side.results):
        is_made = (
            all(found[source] for source in result.sources) if result.kind == "op" else not side.is_telling[number]
        )
        found.append(number in agreeing or (is_made and number not in matched))
    return found
