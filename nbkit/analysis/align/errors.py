"""Measures the pairs: how far they are apart, and how much of it begins at the op or the ops in between."""

from collections.abc import Collection, Container, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from nbkit.analysis.align.matches import Match, Matches
from nbkit.analysis.align.relations import Array, relative_error
from nbkit.analysis.align.side import Side, with_infinities
from nbkit.numerics.metrics import measure_one
from nbkit.numerics.precision import precision_of

# What rounding of a few ops and their inputs may do, in eps of the coarsest dtype that takes part.
LEEWAY = 16.0
# Inputs changed by one rounding may change a result by so much of the error that is called local.
SENSITIVITY = 8.0
HUGEST = 1e4


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
    values = left.value(match.left), right.value(match.right)
    if values[0] is None or values[1] is None or match.relation is None:
        return None
    return relative_error(values[0], match.relation.to_left(values[1]))


def metrics_of(left: Side, right: Side, match: Match) -> dict[str, float | int | None]:
    """Returns the metrics columns of a pair, with the left value as expected; none where values are not known."""
    values = left.value(match.left), right.value(match.right)
    if values[0] is None or values[1] is None or match.relation is None or not values[0].size:
        return {}
    expected, actual = values[0].reshape(-1), match.relation.to_left(values[1]).reshape(-1)
    dtypes = [left.results[match.left].dtype, right.results[match.right].dtype]
    precisions = [precision_of(dtype) for dtype in dtypes]
    known = [precision for precision in precisions if precision is not None]
    if len(known) == 2:
        coarser = max(known, key=lambda precision: precision.eps)
        is_complex = np.iscomplexobj(expected) or np.iscomplexobj(actual)
        wide = np.complex128 if is_complex else np.float64
        expected, actual = expected.astype(wide), actual.astype(wide)
    elif known:
        return {}
    else:
        coarser = None
        expected, actual = expected.astype(np.int64), actual.astype(np.int64)
    found = measure_one(lambda start, end: actual[start:end], expected, coarser)
    names = ("max_abs_error", "max_rel_error", "max_ulp", "noise_ratio")
    return {
        **{name: float(getattr(found, name)[0]) for name in names},
        "mean_abs_error": float(found.mean_abs_error[0]),
        "cosine_similarity": float(found.cosine_similarity[0]),
        "left_nan_count": int(found.expected_nan_count[0]),
        "right_nan_count": int(found.actual_nan_count[0]),
        "left_inf_count": int(found.expected_inf_count[0]),
        "right_inf_count": int(found.actual_inf_count[0]),
    }


def local_errors(
    left: Side,
    right: Side,
    matches: Matches,
    differing: tuple[set[int], set[int]],
    own: Collection[int] = (),
) -> dict[int, Local]:
    """Returns by right result_id what its op, or the ops since the nearest matched results, add to the difference.

    The right execution runs once more: all that read a matched result read the left one's value. Only pairs whose
    values agree, or that differ to the end on both sides, give values: inside another way to the same result nothing is
    the same. The right results in `own` keep their values.
    """
    if right.execution.recompute is None:
        return {}
    given = given_values(left, right, matches, differing)
    given = {number: value for number, value in given.items() if number not in own}
    wanted = [number for number in given if right.results[number].kind == "op"]
    found = _compared(left, right, matches, given, right.execution.recompute(given, wanted))
    suspects = [number for number, local in found.items() if local.error > local.allowed and np.isfinite(local.error)]
    return {**found, **_second_look(right, given, suspects, found)}


def given_values(left: Side, right: Side, matches: Matches, differing: tuple[set[int], set[int]]) -> dict[int, Array]:
    """Returns the left values that readers of matched right results get, in the right ones' shapes."""
    given: dict[int, Array] = {}
    for number, match in matches.left_of.items():
        value = left.execution.value(match.left)
        is_near = (
            match.agrees or match.evidence == "values" or (match.evidence == "name" and match.relation is not None)
        )
        # Scalars and masks that differ are a step to what differs: a pair of them by the graph alone proves nothing. A
        # parameter of ones is one nevertheless.
        is_telling = bool(left.is_telling[match.left] and right.is_telling[number])
        is_telling |= left.results[match.left].kind == right.results[number].kind == "parameter"
        is_sure = is_near or (match.left in differing[0] and number in differing[1] and is_telling)
        if (
            value is not None
            and match.relation is not None
            and is_sure
            and left.numel[match.left] == right.numel[number]
        ):
            given[number] = match.relation.to_right(value)
    return given


def _compared(
    left: Side, right: Side, matches: Matches, given: Mapping[int, Array], computed: Mapping[int, Array]
) -> dict[int, Local]:
    found = {}
    for number, value in computed.items():
        match = matches.left_of[number]
        region = region_of(right, number, given)
        most = max(left.coarsest, right.coarsest)
        eps = min(max([left.eps[match.left], *(right.eps[one] for one in region)]), most)
        allowed = LEEWAY * eps * max(len(region) - 1, 1) ** 0.5
        error = relative_error(with_infinities(given[number]), with_infinities(value))
        found[number] = Local(value, error, allowed, tuple(one for one in region if one in given and one != number))
    return found


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


def _second_look(
    right: Side, given: Mapping[int, Array], suspects: Sequence[int], found: Mapping[int, Local]
) -> dict[int, Local]:
    """Returns suspects with what is allowed where rounding of the inputs alone changes the result as much."""
    if not suspects:
        return {}
    generator = np.random.default_rng(11)
    changed = {number: _rounded(value, right.eps[number], generator) for number, value in given.items()}
    assert right.execution.recompute is not None
    computed = right.execution.recompute(changed, suspects)
    looked = {}
    for number, value in computed.items():
        sensitivity = relative_error(with_infinities(found[number].value), with_infinities(value))
        if np.isfinite(sensitivity):
            allowed = max(found[number].allowed, SENSITIVITY * sensitivity)
            looked[number] = found[number]._replace(allowed=allowed)
    return looked


def _rounded(value: Any, eps: float, generator: np.random.Generator) -> Array:
    """Returns floating-point values that one rounding has changed; others, and masks, as they are."""
    if value.dtype.kind != "f" or not np.isfinite(value).all() or np.abs(value).max(initial=0.0) >= HUGEST:
        return np.asarray(value)
    return np.asarray(value + value * (eps * generator.choice([-1.0, 1.0], value.shape)).astype(value.dtype))
