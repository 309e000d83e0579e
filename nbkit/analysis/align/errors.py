"""Measures the pairs: how far they are apart, and how much of it begins at the op or the ops in between."""

from collections.abc import Collection, Container, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from nbkit.analysis.align.matches import Match, Matches
from nbkit.analysis.align.relations import Array, Relation, in_order, relative_error
from nbkit.analysis.align.side import Side, with_infinities
from nbkit.numerics.blocks import same_bits
from nbkit.numerics.pairs import Columns, Pair, measured_pairs
from nbkit.numerics.precision import Precision, precision_of

# What rounding of a few ops and their inputs may do, in eps of the coarsest dtype that takes part.
LEEWAY = 16.0
# Inputs changed by one rounding may change a result by so much of the error that is called local.
SENSITIVITY = 8.0
HUGEST = 1e4
SEED = 11
# Where numbers are of these, the square of a difference is zero only if there is none.
NARROW = [
    np.dtype(name) for name in ("bool", "float16", "float32", "int8", "uint8", "int16", "uint16", "int32", "uint32")
]
PairKey = tuple[int, int, tuple[int, ...], tuple[int, ...]]
Key = tuple[int, tuple[int, ...], tuple[int, ...]]


class Local(NamedTuple):
    """Holds what a right op computes from the left one's values, how far that is off, and what is allowed.

    `read` are the matched right results that it was computed from.
    """

    value: Array
    error: float
    allowed: float
    read: tuple[int, ...]


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
        values = left.value(first), right.value(second)
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
    values = left.value(match.left), right.value(match.right)
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
        self._known |= found | self._second_look(given, found)
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
        for number, region in new.items():
            if number in values:
                found[number] = self._local(number, region, given, values[number])
        return found

    def _is_same(self, match: Match) -> bool:
        values = self.left.execution.value(match.left), self.right.execution.value(match.right)
        if values[0] is None or values[1] is None or match.relation is None:
            return False
        return same_bits(*match.relation.views(values[0], values[1]))

    def _local(self, number: int, region: Sequence[int], given: Mapping[int, Match], value: Array) -> Local:
        left, right, match = self.left, self.right, given[number]
        most = max(left.coarsest, right.coarsest)
        eps = min(max([left.eps[match.left], *(right.eps[one] for one in region)]), most)
        allowed = LEEWAY * eps * max(len(region) - 1, 1) ** 0.5
        own, expected = right.execution.value(number), left.value(match.left)
        assert expected is not None and match.relation is not None
        if own is not None and own.shape == value.shape and same_bits(value, own):
            value = own
            error = error_of(left, right, match)
            assert error is not None
        else:
            error = relative_error(*match.relation.views(expected, with_infinities(value)))
        return Local(value, error, allowed, tuple(one for one in region if one in given and one != number))

    def _second_look(self, given: Mapping[int, Match], found: Mapping[int, Local]) -> dict[int, Local]:
        """Returns suspects with what is allowed where rounding of the inputs alone changes the result as much."""
        suspects = [number for number, local in found.items() if self._is_suspect(given[number], local)]
        if not suspects:
            return {}
        assert self.right.execution.recompute is not None
        read = sorted({one for number in suspects for one in found[number].read})
        # Left values are known to the rounding of their own dtype, where that is the coarser one.
        eps = {one: max(self.left.eps[given[one].left], self.right.eps[one]) for one in read}
        looked: dict[int, Local] = {}
        for change in (_rounded, _grown):
            changed = {one: change(given_value(self.left, given[one]), eps[one], one) for one in read}
            for number, value in self.right.execution.recompute(changed, suspects).items():
                local = looked.get(number, found[number])
                allowed = self._allowed(given[number], local, with_infinities(value))
                looked[number] = local._replace(allowed=max(local.allowed, allowed))
        return looked

    def _is_suspect(self, match: Match, local: Local) -> bool:
        """Returns whether an error is more than is allowed, and not for NaN or Inf; beside zeros any error is Inf."""
        return local.allowed < local.error and (local.error < np.inf or self._is_zero(match, local))

    def _is_zero(self, match: Match, local: Local) -> bool:
        """Returns whether the left one is all zeros, and the right one floating-point numbers beside them."""
        is_plain = local.value.dtype.kind == "f" and bool(np.isfinite(local.value).all())
        return is_plain and not given_value(self.left, match).any()

    def _allowed(self, match: Match, local: Local, changed: Array) -> float:
        """Returns what a right result may be off, if its inputs changed by one rounding give another one."""
        computed = with_infinities(local.value)
        if self._is_zero(match, local):
            change = _finite_norm(np.subtract(changed, computed))
            return np.inf if _finite_norm(computed) <= SENSITIVITY * change else 0.0
        # Beside the left result, as the error: what is nearly zero there, such as the mean of a norm, may be noise.
        scale = _finite_norm(computed) / (_finite_norm(given_value(self.left, match)) or np.inf)
        sensitivity = relative_error(computed, changed) * scale
        return SENSITIVITY * sensitivity if np.isfinite(sensitivity) else 0.0


def _finite_norm(value: Array) -> float:
    wide = np.abs(value).astype(np.float64)
    return float(np.linalg.norm(wide[np.isfinite(wide)]))


def is_noise(side: Side, number: int, known: Container[int]) -> bool:
    """Returns whether a result is nothing but rounding: one more of what it is made of changes it as much as it is."""
    value, recompute = side.execution.value(number), side.execution.recompute
    if value is None or recompute is None or value.dtype.kind != "f" or not np.isfinite(value).all():
        return False
    read = {one: side.execution.value(one) for one in region_of(side, number, known) if one in known}
    for change in (_rounded, _grown):
        changed = {one: change(given, side.eps[one], one) for one, given in read.items() if given is not None}
        found = recompute(changed, [number]).get(number)
        if found is not None and 0 < _finite_norm(value) <= SENSITIVITY * _finite_norm(np.subtract(found, value)):
            return True
    return False


def _key(match: Match) -> Key:
    assert match.relation is not None
    return match.left, match.relation.split, match.relation.axes


def given_value(left: Side, match: Match) -> Array:
    """Returns the left value of a match in the shape of the right one."""
    value = left.execution.value(match.left)
    assert value is not None and match.relation is not None
    return match.relation.to_right(value)


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


def region_of(side: Side, number: int, known: Container[int]) -> list[int]:
    """Returns the result and what it is made of, back to results that are known, these included."""
    region, waiting = {number: None}, list(side.results[number].sources)
    while waiting:
        source = waiting.pop()
        if source not in region:
            region[source] = None
            if source not in known:
                waiting += side.results[source].sources
    return sorted(region)


def _rounded(value: Any, eps: float, number: int) -> Array:
    """Returns floating-point values that one rounding has changed; others, and masks, as they are.

    The signs are those of the result's number, whatever else is changed.
    """
    if not _is_plain(value):
        return np.asarray(value)
    signs = np.random.default_rng([SEED, number]).integers(0, 2, value.shape, dtype=np.int8) * 2 - 1
    return np.asarray(value + value * (signs * np.asarray(eps, value.dtype)))


def _grown(value: Any, eps: float, number: int) -> Array:
    """Returns floating-point values, each larger by a rounding: what cancels in a sum adds up then."""
    del number
    return np.asarray(value + np.abs(value) * np.asarray(eps, value.dtype)) if _is_plain(value) else np.asarray(value)


def _is_plain(value: Array) -> bool:
    """Returns whether values are floating-point numbers, and no mask."""
    return value.dtype.kind == "f" and bool(np.isfinite(value).all()) and np.abs(value).max(initial=0.0) < HUGEST
