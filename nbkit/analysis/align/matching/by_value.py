"""Matches results by their values: the same elements in the same order, in another order of axes, as a part."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from nbkit.analysis.align.errors import error_in_order
from nbkit.analysis.align.matches import Match, Matches
from nbkit.analysis.align.relations import Array, Relation, in_order, permutation_of, relative_error
from nbkit.analysis.align.side import Side, values_of

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
# Differences between executions that are noise, over the coarsest eps: it adds up from layer to layer.
NOISE = 8192.0
LEAST_TOLERANCE, MOST_TOLERANCE = 1e-7, 0.06
# Errors up to so many eps are rounding, where that is all there is to go by.
SAME = 64.0
# A copy of a result with a partner differs from it by a cast alone.
CAST = 4.0
# Statistics of the same tensor differ by up to so many eps.
ROUNDING = 64.0
# Another op is as much less likely as so many eps.
OP = 8.0
# So many candidates of one result are tried with values, at most.
MOST_TRIALS = 4


class Candidates(NamedTuple):
    """Holds pairs of rows with their distance, nearest first."""

    left: Ints
    right: Ints
    distance: Floats


def tolerance_of(left: Side, right: Side) -> float:
    """Returns the relative error up to which two results count as the same."""
    eps = max(left.coarsest, right.coarsest)
    return min(NOISE * eps, MOST_TOLERANCE) if eps else LEAST_TOLERANCE


def same_of(left: Side, right: Side) -> float:
    """Returns the relative error up to which a difference is rounding, where that is all there is to go by."""
    return min(SAME * max(left.coarsest, right.coarsest), tolerance_of(left, right) / 2)


def match_values(left: Side, right: Side, matches: Matches, tolerance: float) -> None:
    """Adds matches of results with the same elements, in the same order or permuted."""
    _match_clusters(left, right, matches, tolerance)
    _match_statistics(left, right, matches, min(tolerance, ROUNDING * max(left.coarsest, right.coarsest)))
    _match_permuted(left, right, matches, tolerance)
    _match_again(left, right, matches, tolerance)


def near(left: Floats, right: Floats, left_groups: Ints, right_groups: Ints, tolerance: float) -> Candidates:
    """Returns pairs of rows of one group whose features are all as near as `tolerance`; rows with NaN are near none."""
    order = np.lexsort((right[:, 0], right_groups))
    shift = np.unique(np.concatenate([left_groups, right_groups]), return_inverse=True)[1] * 1e6
    left_keys, right_keys = left[:, 0] + shift[: len(left)], right[:, 0] + shift[len(left) :]
    ordered = right_keys[order]
    # Keys of NaN sort last and are never within a finite window.
    starts = np.searchsorted(ordered, left_keys - tolerance, "left")
    ends = np.searchsorted(ordered, left_keys + tolerance, "right")
    counts = np.where(np.isnan(left_keys), 0, ends - starts)
    lefts = np.repeat(np.arange(len(left)), counts)
    offsets = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    rights = order[np.repeat(starts, counts) + offsets] if len(lefts) else np.zeros(0, np.int64)
    distance = np.abs(left[lefts] - right[rights]).max(axis=1, initial=0.0)
    fits = distance <= tolerance
    lefts, rights, distance = lefts[fits], rights[fits], distance[fits]
    ranks = np.argsort(distance, kind="stable")
    return Candidates(lefts[ranks], rights[ranks], distance[ranks])


def _match_clusters(left: Side, right: Side, matches: Matches, tolerance: float) -> None:
    """Matches clusters of both sides, the nearest first, each with one of the other side; then what is in them."""
    clusters = left.clusters, right.clusters
    if not all(clusters):
        return
    first = [np.array([cluster[0] for cluster in of_side]) for of_side in clusters]
    features = [
        np.hstack([side.projections[rows], np.log(np.maximum(side.moments[rows, :1], 1e-300)), side.moments[rows, 5:]])
        for side, rows in zip((left, right), first, strict=True)
    ]
    groups = [side.numel[rows] for side, rows in zip((left, right), first, strict=True)]
    found = near(features[0], features[1], groups[0], groups[1], tolerance)
    taken: tuple[set[int], set[int]] = (set(), set())
    for left_cluster, right_cluster in _by_op_too(left, right, clusters, found):
        if left_cluster in taken[0] or right_cluster in taken[1]:
            continue
        members = clusters[0][left_cluster], clusters[1][right_cluster]
        if _values_agree(left, right, members[0][0], members[1][0], tolerance):
            taken[0].add(left_cluster)
            taken[1].add(right_cluster)
            _match_members(left, right, *members, matches)


def _match_statistics(left: Side, right: Side, matches: Matches, tolerance: float) -> None:
    """Matches results of which one side knows statistics alone: as many elements, the same rms, mean and extremes."""
    sides = left, right
    rows = [
        np.array([n for n in matches.unmatched(which, len(side)) if side.is_telling[n]], np.int64)
        for which, side in enumerate(sides)
    ]
    if not len(rows[0]) or not len(rows[1]):
        return
    features = [
        np.hstack([np.log(np.maximum(side.moments[chosen, :1], 1e-300)), side.moments[chosen][:, [1, 3, 4, 5, 6]]])
        for side, chosen in zip(sides, rows, strict=True)
    ]
    found = near(features[0], features[1], left.numel[rows[0]], right.numel[rows[1]], tolerance)
    pairs = list(zip(rows[0][found.left].tolist(), rows[1][found.right].tolist(), strict=True))
    for first, second in sorted(pairs, key=lambda pair: -_likeness(left, right, *pair)):
        is_unknown = np.isnan(left.projections[first, 0]) or np.isnan(right.projections[second, 0])
        if is_unknown and first not in matches.right_of and second not in matches.left_of:
            _add_same(left, right, first, second, matches)


def _by_op_too(
    left: Side, right: Side, clusters: tuple[list[list[int]], list[list[int]]], found: Candidates
) -> list[tuple[int, int]]:
    """Returns pairs of clusters, the nearest first; of those as near as rounding lets them be, the ones of an op."""
    noise = OP * max(left.coarsest, right.coarsest)
    words = [
        [frozenset(side.does[number] for number in cluster) for cluster in of_side]
        for side, of_side in zip((left, right), clusters, strict=True)
    ]
    pairs = zip(found.left.tolist(), found.right.tolist(), found.distance.tolist(), strict=True)
    ranked = sorted(
        (distance + noise * words[0][first].isdisjoint(words[1][second]), at, first, second)
        for at, (first, second, distance) in enumerate(pairs)
    )
    return [(first, second) for _, _, first, second in ranked]


def _values_agree(left: Side, right: Side, first: int, second: int, tolerance: float) -> bool:
    """Returns whether the values are the same in order; true where they were not kept: the features said so."""
    error = error_in_order(left, right, first, second)
    return error is None or error <= tolerance


def _match_members(left: Side, right: Side, lefts: Sequence[int], rights: Sequence[int], matches: Matches) -> None:
    """Matches results with the same values one to one, the most alike first; then what is left over."""
    scores = sorted(
        ((-_likeness(left, right, first, second), at, first, second))
        for at, first in enumerate(lefts)
        for second in rights
    )
    for _, _, first, second in scores:
        if first not in matches.right_of and second not in matches.left_of:
            _add_same(left, right, first, second, matches)
    for _, _, first, second in scores:
        if first not in matches.right_of or second not in matches.left_of:
            _add_same(left, right, first, second, matches)


def _add_same(left: Side, right: Side, first: int, second: int, matches: Matches) -> None:
    ours, theirs = left.results[first], right.results[second]
    relation = in_order(ours.shape, theirs.shape, is_cast=ours.dtype != theirs.dtype)
    evidence = "name" if ours.name == theirs.name else "values"
    matches.add(Match(first, second, evidence, relation, agrees=True))


def _likeness(left: Side, right: Side, first: int, second: int) -> float:
    """Returns how alike two results with the same values are: kind and op, name, shape, dtype, place in their order."""
    ours, theirs = left.results[first], right.results[second]
    score = 0.0
    score += 8 * (ours.kind == theirs.kind)
    score += 4 * (left.does[first] == right.does[second])
    score += 4 * (ours.name == theirs.name)
    score += 2 * (ours.shape == theirs.shape) + (ours.dtype == theirs.dtype)
    score += 1.5 * (left.is_passing[first] == right.is_passing[second])
    return score - abs(first / max(len(left), 1) - second / max(len(right), 1))


def _match_permuted(left: Side, right: Side, matches: Matches, tolerance: float) -> None:
    """Matches results of which one is the other one with its axes in another order; each side's unmatched ones."""
    for side in (1, 0):
        free = [
            number
            for number in matches.unmatched(side, len((left, right)[side]))
            if (left, right)[side].is_telling[number]
        ]
        for number, others in _permutation_candidates(left, right, side, free, tolerance):
            _add_permuted(left, right, side, number, others, matches, tolerance)


def _permutation_candidates(
    left: Side, right: Side, side: int, free: list[int], tolerance: float
) -> Iterator[tuple[int, list[int]]]:
    """Yields each free result with those of the other side that have the same elements in some order, nearest first."""
    mine, other = (left, right) if side == 0 else (right, left)
    rows, others = np.array(free, dtype=np.int64), np.flatnonzero(other.is_telling)
    if not len(rows) or not len(others):
        return
    moments = [
        np.hstack([np.log(np.maximum(of.moments[chosen, :1], 1e-300)), of.moments[chosen, 1:]])
        for of, chosen in ((mine, rows), (other, others))
    ]
    found = near(moments[0], moments[1], mine.numel[rows], other.numel[others], tolerance)
    candidates: dict[int, list[int]] = {}
    for first, second in zip(found.left.tolist(), found.right.tolist(), strict=True):
        candidates.setdefault(int(rows[first]), []).append(int(others[second]))
    for number in free:
        if number in candidates:
            yield number, candidates[number]


def _add_permuted(
    left: Side, right: Side, side: int, number: int, others: list[int], matches: Matches, tolerance: float
) -> None:
    mine, other = (left, right) if side == 0 else (right, left)
    seen: set[tuple[float, ...]] = set()
    tried = 0
    # One without a partner, and one of the same op first; views of one tensor need one try for all of a shape.
    ranked = sorted(
        others, key=lambda one: (one in matches.of(1 - side), mine.does[number] != other.does[one], abs(one - number))
    )
    for candidate in ranked:
        key = (*other.projections[candidate].tolist(), *map(float, other.results[candidate].shape))
        if key in seen:
            continue
        seen.add(key)
        tried += 1
        if tried > MOST_TRIALS:
            return
        pair = (number, candidate) if side == 0 else (candidate, number)
        relation = _permuted(left, right, *pair, tolerance)
        if relation is not None:
            matches.add(Match(*pair, "values", relation, agrees=True))
            return


def _nearer(straight: Relation, turned: Relation | None, left: Array, right: Array) -> Relation | None:
    """Returns a permutation, or no other order if that is nearer: of heads that are alike any order is near."""
    if turned is None:
        return None
    errors = [relative_error(*one.views(left, right)) for one in (straight, turned)]
    return straight if errors[0] <= errors[1] else turned


def _permuted(left: Side, right: Side, first: int, second: int, tolerance: float) -> Relation | None:
    values = values_of(left, right, first, second)
    shapes = left.results[first].shape, right.results[second].shape
    if values[0] is not None and values[1] is not None:
        return _nearer(in_order(*shapes), permutation_of(values[0], values[1], tolerance), values[0], values[1])
    if not np.abs(left.symmetric(first) - right.symmetric(second)).max() <= tolerance:
        return None
    lengths = [size for size in shapes[0] if size != 1]
    if len(set(lengths)) < len(lengths):
        return None  # which of the equal axes is which, features do not say
    others = [size for size in shapes[1] if size != 1]
    return Relation("permute", *shapes, tuple(lengths), tuple(lengths.index(size) for size in others))


def _match_again(left: Side, right: Side, matches: Matches, tolerance: float) -> None:
    """Matches what is left over with a result that has a partner already: the same values, but for a cast."""
    sides, tolerance = (left, right), min(tolerance, CAST * max(left.coarsest, right.coarsest))
    for side in (0, 1):
        free = [number for number in matches.unmatched(side, len(sides[side])) if sides[side].is_telling[number]]
        rows, others = np.array(free, dtype=np.int64), np.flatnonzero(sides[1 - side].is_telling)
        if not len(rows) or not len(others):
            continue
        features = [
            np.hstack([of.projections[chosen], np.log(np.maximum(of.moments[chosen, :1], 1e-300))])
            for of, chosen in ((sides[side], rows), (sides[1 - side], others))
        ]
        groups = sides[side].numel[rows], sides[1 - side].numel[others]
        found = near(features[0], features[1], groups[0], groups[1], tolerance)
        for mine, other in zip(rows[found.left].tolist(), others[found.right].tolist(), strict=True):
            pair = (mine, other) if side == 0 else (other, mine)
            if mine not in matches.of(side) and _values_agree(left, right, *pair, tolerance):
                _add_same(left, right, *pair, matches)
