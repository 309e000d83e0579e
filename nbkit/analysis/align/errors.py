"""Measures the pairs: how far they are apart, and how much of it begins at the op or the ops in between."""

from collections.abc import Collection, Container, Mapping, Sequence

import numpy as np

from nbkit.analysis.align.allowance import Local as Local
from nbkit.analysis.align.allowance import given_value as given_value
from nbkit.analysis.align.allowance import least_allowed, roundings, second_look
from nbkit.analysis.align.allowance import region_of as region_of
from nbkit.analysis.align.matches import Match, Matches
from nbkit.analysis.align.relations import Array, Relation, in_order, relative_error
from nbkit.analysis.align.side import Side, compared, values_of
from nbkit.numerics.blocks import same_bits
from nbkit.numerics.pairs import Columns, Pair, measured_pairs
from nbkit.numerics.precision import Precision, precision_of

# Where numbers are of these, the square of a difference is zero only if there is none.
NARROW = [
    np.dtype(name) for name in ("bool", "float16", "float32", "int8", "uint8", "int16", "uint16", "int32", "uint32")
]
PairKey = tuple[int, int, tuple[int, ...], tuple[int, ...]]
Key = tuple[int, tuple[int, ...], tuple[int, ...]]


def error_of(left: Side, right: Side, match: Match) -> float | None:
    """Returns |right - left| over |left| of a pair, 2-norms; null where the values are not known."""
    return None if match.relation is None else _error(left, right, match.left, match.right, match.relation)


def error_in_order(left: Side, right: Side, first: int, second: int) -> float | None:
    """Returns the error of two results as large, element by element in their order; null where values are not known."""
    return _error(left, right, first, second, in_order(left.results[first].shape, right.results[second].shape))


def _error(left: Side, right: Side, first: int, second: int, relation: Relation) -> float | None:
    """Measures a pair once: the left side keeps its errors with the other one."""
    key = key_of(left, right, first, second, relation)
    if key not in left.errors:
        values = values_of(left, right, first, second)
        is_known = values[0] is not None and values[1] is not None
        left.errors[key] = relative_error(*relation.views(*values)) if is_known else None  # type: ignore[arg-type]
    return left.errors[key]


def key_of(left: Side, right: Side, first: int, second: int, relation: Relation) -> PairKey:
    """Returns what is the same for pairs of the same elements in the same order: those of views."""
    return left.execution.values.first(first), right.execution.values.first(second), relation.split, relation.axes


def metrics_of(left: Side, right: Side, matches: Sequence[Match]) -> list[Columns]:
    """Returns the metrics columns of pairs, with the left value as expected; none where values are not known."""
    groups: dict[tuple[PairKey, Precision | None], list[int]] = {}
    pairs: list[Pair] = []
    for at, match in enumerate(matches):
        pair = _pair(left, right, match)
        if pair is None:
            continue
        assert match.relation is not None
        key = key_of(left, right, match.left, match.right, match.relation), pair.precision
        if key not in groups:
            pairs.append(pair)
        groups.setdefault(key, []).append(at)
    found: list[Columns] = [{} for _ in matches]
    for members, metrics in zip(groups.values(), measured_pairs(pairs), strict=True):
        for at in members:
            found[at] = metrics
    return found


def _pair(left: Side, right: Side, match: Match) -> Pair | None:
    """Returns what is measured of a match; null where that is not known, or numbers are compared with integers."""
    values = values_of(left, right, match.left, match.right)
    if values[0] is None or values[1] is None or match.relation is None or not values[0].size:
        return None
    precisions = [precision_of(side.results[one].dtype) for side, one in ((left, match.left), (right, match.right))]
    known = [precision for precision in precisions if precision is not None]
    if len(known) == 1:
        return None
    coarser = max(known, key=lambda precision: precision.eps) if known else None
    features = left.results[match.left].features
    is_plain = features is not None and values[0] is left.execution.value(match.left)
    scale = features.rms if features is not None and is_plain else None
    is_narrow = values[0].dtype in NARROW and values[1].dtype in NARROW
    is_equal = is_narrow and error_of(left, right, match) == 0
    return Pair(*match.relation.views(values[0], values[1]), coarser, scale, is_equal)


class LocalErrors:
    """Says what right ops add to the difference, as matches become known: only what they change is computed again."""

    def __init__(self, left: Side, right: Side) -> None:
        self.left, self.right = left, right
        self._read: dict[int, Key] = {}
        self._known: dict[int, Local] = {}

    def of(self, matches: Matches, differing: tuple[set[int], set[int]], own: Collection[int] = ()) -> dict[int, Local]:
        """Returns by right result_id what its op, or the ops since the nearest matched results, add to the difference.

        The right execution runs once more: all that read a matched result read the left one's value. Only pairs whose
        values agree, or that differ to the end on both sides, give values: inside another way to the same result
        nothing is the same. The right results in `own` keep their values.
        """
        right, recompute = self.right, self.right.execution.recompute
        if recompute is None:
            return {}
        given = given_matches(self.left, right, matches, differing)
        given = {number: match for number, match in given.items() if number not in own}
        wanted = {number: region_of(right, number, given) for number in given if right.results[number].kind == "op"}
        keys = {number: _key(match) for number, match in given.items()}
        changed = {number for number in keys | self._read if keys.get(number) != self._read.get(number)}
        self._known = {
            number: self._known[number]
            for number, region in wanted.items()
            if number in self._known and changed.isdisjoint(region)
        }
        self._read = keys
        new = {number: region for number, region in wanted.items() if number not in self._known}
        found = self._computed(given, new)
        self._known |= found | second_look(self.left, self.right, given, found)
        return {number: self._known[number] for number in wanted if number in self._known}

    def _computed(self, given: Mapping[int, Match], new: Mapping[int, Sequence[int]]) -> dict[int, Local]:
        """Returns what is new; ops that read the very same on both sides compute what they did."""
        right, found = self.right, dict[int, Local]()
        is_same = {number: self._is_same(match) for number, match in given.items()}
        values: dict[int, Array] = {}
        for number, region in new.items():
            own = right.execution.value(number)
            if own is not None and all(is_same[one] for one in region if one in given and one != number):
                values[number] = own
        rest = [number for number in new if number not in values]
        if rest:
            assert right.execution.recompute is not None
            replaced = {number: given_value(self.left, match) for number, match in given.items()}
            values |= right.execution.recompute(replaced, rest)
        lefts = {match.left for match in given.values()}
        for number, region in new.items():
            if number in values:
                found[number] = self._local(number, region, given, lefts, values[number])
        return found

    def _is_same(self, match: Match) -> bool:
        values = self.left.execution.value(match.left), self.right.execution.value(match.right)
        if values[0] is None or values[1] is None or match.relation is None:
            return False
        return same_bits(*match.relation.views(values[0], values[1]))

    def _local(
        self, number: int, region: Sequence[int], given: Mapping[int, Match], lefts: Container[int], value: Array
    ) -> Local:
        left, right, match = self.left, self.right, given[number]
        most = max(left.coarsest, right.coarsest)
        eps = min(max([left.eps[match.left], *(right.eps[one] for one in region)]), most)
        mine = [one for one in region_of(left, match.left, lefts) if one == match.left or one not in lefts]
        inside = [one for one in region if one not in given]
        read = tuple(one for one in region if one in given and one != number)
        # What is compared was rounded on both sides, there or before.
        operands = max(sum(right.eps[one] > 0 for one in read) + roundings(right, inside, eps), 2.0)
        steps = max(roundings(left, mine, eps) + roundings(right, [*inside, number], eps), 2.0)
        once = "backward" not in (left.results[match.left].phase, right.results[number].phase)
        allowed = least_allowed(eps, operands, steps, once=once)
        own, expected = right.execution.value(number), values_of(left, right, match.left, number)[0]
        assert expected is not None and match.relation is not None
        if own is not None and own.shape == value.shape and same_bits(value, own):
            value = own
            error = error_of(left, right, match)
            assert error is not None
        else:
            error = relative_error(*match.relation.views(expected, compared(left, right, match, value)))
        return Local(value, error, allowed, read, eps if once else 0.0)


def _key(match: Match) -> Key:
    assert match.relation is not None
    return match.left, match.relation.split, match.relation.axes


def given_matches(left: Side, right: Side, matches: Matches, differing: tuple[set[int], set[int]]) -> dict[int, Match]:
    """Returns by right result_id the matches whose left values the readers of the right results get."""
    given: dict[int, Match] = {}
    for number, match in matches.left_of.items():
        is_near = (
            match.agrees or match.evidence == "values" or (match.evidence == "name" and match.relation is not None)
        )
        # Scalars and masks that differ are a step to what differs: a pair of them by the graph alone proves nothing. A
        # parameter of ones is one nevertheless.
        is_telling = bool(left.is_telling[match.left] and right.is_telling[number])
        is_telling |= left.results[match.left].kind == right.results[number].kind == "parameter"
        is_sure = is_near or (match.left in differing[0] and number in differing[1] and is_telling)
        is_as_large = left.numel[match.left] == right.numel[number]
        if is_sure and is_as_large and match.relation is not None and left.execution.value(match.left) is not None:
            given[number] = match
    return given
