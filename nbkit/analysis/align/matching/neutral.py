"""Finds matches of what changes nothing: a product with ones on one side, where the other side's product is another."""

from collections.abc import Iterator

from nbkit.analysis.align.errors import error_of
from nbkit.analysis.align.matches import Match, Matches
from nbkit.analysis.align.side import Side

# What is nearer by so much is no nearer by chance.
NEARER = 0.25


def neutral_matches(left: Side, right: Side, matches: Matches) -> Iterator[Match]:
    """Yields matches by equal values of an op's result with what that op reads, where the same op stands there too.

    A norm's weight of ones leaves what it multiplies as it is. Where the other side has another weight, its product has
    no partner: that one corresponds, not the tensor before it. Names of parameters have to be matched by then.
    """
    for which, sides in ((0, (left, right)), (1, (right, left))):
        again: dict[int, list[Match]] = {}
        for match in matches.all:
            mine, other = (match.left, match.right) if which == 0 else (match.right, match.left)
            if matches.of(1 - which)[other] is not match:
                again.setdefault(mine, []).append(match)
        gone: set[int] = set()
        for number in sorted(again):
            found = [match for match in again[number] if _is_neutral(*sides, which, match, matches, gone)]
            if found:
                gone.add(number)
                yield from found


def _is_neutral(mine: Side, other: Side, which: int, match: Match, matches: Matches, gone: set[int]) -> bool:
    """Returns whether a match takes a result for what its op reads; so do all that only pass such a result on."""
    number, partner = (match.left, match.right) if which == 0 else (match.right, match.left)
    result = mine.results[number]
    if result.kind != "op":
        return False
    if mine.is_passing[number]:
        return result.sources[0] in gone
    if not any(matches.partner(which, source) == partner for source in result.sources):
        return False
    return any(_has_another_operand(mine, other, which, number, reader, matches) for reader in _readers(other, partner))


def _has_another_operand(mine: Side, other: Side, which: int, number: int, reader: int, matches: Matches) -> bool:
    """Returns whether an op of the other side without partner does the same, with an operand known to differ."""
    if reader in matches.of(1 - which) or other.does[reader] != mine.does[number]:
        return False
    if other.numel[reader] != mine.numel[number]:
        return False
    operands = [matches.of(which).get(source) for source in mine.results[number].sources]
    theirs = other.results[reader].sources
    return any(
        match is not None and not match.agrees and (match.right if which == 0 else match.left) in theirs
        for match in operands
    )


def _readers(side: Side, number: int) -> Iterator[int]:
    """Yields what reads a result, also through ops that only pass it on."""
    for reader in side.execution.readers[number]:
        if side.is_passing[reader]:
            yield from _readers(side, reader)
        else:
            yield reader


def farther_matches(left: Side, right: Side, matches: Matches) -> Iterator[Match]:
    """Yields matches by value of what the other side's op reads, where what it makes of that is nearer by far.

    A product is near to itself with a small bias, which stands in another op on one side: it is the sum that
    corresponds to an op with both inside.
    """
    for which, sides in ((0, (left, right)), (1, (right, left))):
        of_mine: dict[int, list[Match]] = {}
        for match in matches.all:
            if match.agrees and match.part is None and match.relation is not None:
                # Views have one partner or another: they are one result here.
                first = sides[0].execution.values.first(match.right if which else match.left)
                of_mine.setdefault(first, []).append(match)
        for found in (group for group in of_mine.values() if len(group) > 1):
            errors = {(one.left if which else one.right): error_of(left, right, one) for one in found}
            for one in found:
                other = one.left if which else one.right
                error = errors[other] or 0.0
                made = [errors.get(reader) for reader in sides[1].execution.readers[other]]
                if any(near is not None and near < NEARER * error for near in made):
                    yield one
