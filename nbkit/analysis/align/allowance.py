"""Says how far rounding allows a right result to be off: by its dtype, its steps, and one rounding of what they read.

A correctly rounded op is off by half of eps at most, by 0.2 to 0.3 of it as 2-norms. A narrow dtype (bfloat16, float16)
is accumulated in float32, so that an op rounds once, however long its sums are: 1.5 thousand results of right ports
(other kernels, attention in steps, norms and activations by hand, models of transformers) are off by up to 0.34 of eps
times the root of the number of steps on both sides, and NARROW_LEEWAY is allowed. Wider dtypes are accumulated in
themselves and get LEEWAY. So does the backward pass: there kernels add up rows in a narrow dtype (the gradients of a
norm's weight are off by 2.8 eps with 48 rows), and numbers of float16 are so small that they lose bits. More is allowed
only where roundings of what the steps read change the result by more.
"""

from collections.abc import Callable, Container, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from nbkit.analysis.align.matches import Match
from nbkit.analysis.align.relations import Array, relative_error
from nbkit.analysis.align.side import Side, compared
from nbkit.numerics.noise_ratio import accumulates_alike
from nbkit.numerics.precision import PRECISIONS
from nbkit.ops.names import bare_name
from nbkit.ops.rounding import THRESHOLDS
from nbkit.step.reachable import reachable

# What rounding of a few ops and their inputs may do, in eps of the coarsest dtype that takes part.
LEEWAY, NARROW_LEEWAY = 16.0, 1.0
# Inputs changed by one eps may change a result by so much of the error that is called local. A rounding is half of that
# at most, so that a narrow dtype needs no more.
SENSITIVITY, NARROW_SENSITIVITY = 8.0, 1.0
# The eps from which on dtypes are narrow.
NARROW = min(precision.eps for precision in PRECISIONS.values() if not accumulates_alike(precision))
# So many steps of one region, at most, are rounded once more one by one.
MOST_STEPS = 24
SEED = 11


class Local(NamedTuple):
    """Holds what a right op computes from the left one's values, how far that is off, and what is allowed.

    `read` are the matched right results that it was computed from; `eps` is that of the coarsest dtype that took part,
    0 where that does not round once: in the backward pass.
    """

    value: Array
    error: float
    allowed: float
    read: tuple[int, ...]
    eps: float = 0.0


def roundings(side: Side, numbers: Iterable[int], eps: float) -> float:
    """Returns how many roundings to `eps` some results are worth: moved numbers none, a finer dtype's a part of one."""
    return sum((min(side.eps[one], eps) / eps) ** 2 for one in numbers if eps and side.may_round[one])


def least_allowed(eps: float, read: float, steps: float, *, once: bool = True) -> float:
    """Returns what is allowed an op in any case; `read` are the numbers that the right side reads or rounds there.

    `steps` are the roundings of both sides there; `once` says whether a narrow dtype rounds once at each.
    """
    if eps >= NARROW and once:
        return float(NARROW_LEEWAY * eps * max(steps, 1) ** 0.5)
    return float(LEEWAY * eps * max(read, 1) ** 0.5)


def second_look(left: Side, right: Side, given: Mapping[int, Match], found: Mapping[int, Local]) -> dict[int, Local]:
    """Returns suspects with what is allowed where rounding of what they read alone changes the result as much."""
    suspects = [number for number, local in found.items() if _is_suspect(left, given[number], local)]
    if not suspects:
        return {}
    assert right.execution.recompute is not None
    read = sorted({one for number in suspects for one in found[number].read})
    # Left values are known to the rounding of their own dtype, where that is the coarser one.
    eps = {one: max(left.eps[given[one].left], right.eps[one]) for one in read}
    looked: dict[int, Local] = {}
    for change in (rounded, _grown):
        values = {one: given_value(left, given[one]) for one in read}
        changed = {one: _changed(right, change, value, eps[one], one) for one, value in values.items()}
        for number, value in right.execution.recompute(changed, suspects).items():
            local = looked.get(number, found[number])
            allowed = _allowed(left, right, given[number], local, value)
            looked[number] = local._replace(allowed=max(local.allowed, allowed))
    for number, local in looked.items():
        if local.eps >= NARROW and _is_suspect(left, given[number], local):
            looked[number] = local._replace(allowed=max(local.allowed, _of_steps(left, right, number, given)))
    return looked


def _of_steps(left: Side, right: Side, number: int, given: Mapping[int, Match]) -> float:
    """Returns what a rounding of each step inside, on both sides, changes the result by: the root of their squares."""
    match, squares = given[number], 0.0
    lefts = {one.left for one in given.values()}
    for side, end, known in ((left, match.left, lefts), (right, number, given)):
        recompute, value = side.execution.recompute, side.execution.value(end)
        steps = [one for one in region_of(side, end, known) if one not in known]
        if recompute is None or value is None or len(steps) > MOST_STEPS:
            continue
        for one in steps:
            inner = side.execution.value(one)
            if inner is None or not side.eps[one] or not side.may_round[one]:
                continue
            changed = recompute({one: rounded(inner, side.eps[one], one)}, [end]).get(end)
            if changed is not None:
                error = relative_error(*(compared(left, right, match, one) for one in (value, changed)))
                squares += error**2 if np.isfinite(error) else 0.0
    return float(squares**0.5)


def _changed(side: Side, change: Callable[[Any, float, int], Array], value: Array, eps: float, number: int) -> Array:
    """Returns a value changed by a rounding; as it is where the backward pass asks on which side of a border it is.

    Both executions read the very same value there, and must answer alike.
    """
    is_asked = any(_asks(side, reader) for reader in side.execution.readers[number])
    return value if is_asked else change(value, eps, number)


def _asks(side: Side, number: int) -> bool:
    """Returns whether an op tells the backward pass a side of a border, or places: of the largest elements, say."""
    result, readers = side.results[number], side.execution.readers[number]
    if result.phase == "backward":
        return bare_name(result.op) in THRESHOLDS
    return result.dtype.startswith("int") and any(side.results[one].phase == "backward" for one in readers)


def _is_suspect(left: Side, match: Match, local: Local) -> bool:
    """Returns whether an error is more than is allowed, and not for NaN or Inf; beside zeros any error is Inf."""
    return local.allowed < local.error and (local.error < np.inf or _is_zero(left, match, local))


def _is_zero(left: Side, match: Match, local: Local) -> bool:
    """Returns whether the left one is all zeros, and the right one floating-point numbers beside them."""
    is_plain = local.value.dtype.kind == "f" and bool(np.isfinite(local.value).all())
    return is_plain and not given_value(left, match).any()


def _allowed(left: Side, right: Side, match: Match, local: Local, changed: Array) -> float:
    """Returns what a right result may be off, if its inputs changed by one rounding give another one."""
    computed, changed = (compared(left, right, match, one) for one in (local.value, changed))
    if _is_zero(left, match, local):
        change = _finite_norm(np.subtract(changed, computed))
        return np.inf if _finite_norm(computed) <= SENSITIVITY * change else 0.0
    # Beside the left result, as the error: what is nearly zero there, such as the mean of a norm, may be noise.
    scale = _finite_norm(computed) / (_finite_norm(given_value(left, match)) or np.inf)
    sensitivity = relative_error(computed, changed) * scale
    factor = NARROW_SENSITIVITY if local.eps >= NARROW else SENSITIVITY
    return factor * sensitivity if np.isfinite(sensitivity) else 0.0


def is_noise(side: Side, number: int, known: Container[int]) -> bool:
    """Returns whether a result is nothing but rounding: one more of what it is made of changes it as much as it is."""
    value, recompute = side.execution.value(number), side.execution.recompute
    if value is None or recompute is None or value.dtype.kind != "f" or not np.isfinite(value).all():
        return False
    read = {one: side.execution.value(one) for one in region_of(side, number, known) if one in known}
    for change in (rounded, _grown):
        known_values = {one: given for one, given in read.items() if given is not None}
        changed = {one: _changed(side, change, given, side.eps[one], one) for one, given in known_values.items()}
        found = recompute(changed, [number]).get(number)
        if found is not None and 0 < _finite_norm(value) <= SENSITIVITY * _finite_norm(np.subtract(found, value)):
            return True
    return False


def given_value(left: Side, match: Match) -> Array:
    """Returns the left value of a match in the shape of the right one."""
    value = left.execution.value(match.left)
    assert value is not None and match.relation is not None
    return match.relation.to_right(value)


def region_of(side: Side, number: int, known: Container[int]) -> list[int]:
    """Returns the result and what it is made of, back to results that are known, these included."""
    results = side.results
    return sorted(reachable([number], lambda one: results[one].sources if one == number or one not in known else ()))


def _finite_norm(value: Array) -> float:
    wide = np.abs(value).astype(np.float64)
    return float(np.linalg.norm(wide[np.isfinite(wide)]))


def rounded(value: Any, eps: float, number: int) -> Array:
    """Returns floating-point values that one rounding has changed; others as they are.

    The signs are those of the result's number, whatever else is changed.
    """
    if not _is_plain(value):
        return np.asarray(value)
    signs = np.random.default_rng([SEED, number]).integers(0, 2, value.shape, dtype=np.int8) * 2 - 1
    return _kept_finite(value, value + value * (signs * np.asarray(eps, value.dtype)))


def _grown(value: Any, eps: float, number: int) -> Array:
    """Returns floating-point values, each larger by a rounding: what cancels in a sum adds up then."""
    del number
    if not _is_plain(value):
        return np.asarray(value)
    return _kept_finite(value, value + np.abs(value) * np.asarray(eps, value.dtype))


def _is_plain(value: Array) -> bool:
    """Returns whether values are finite floating-point numbers."""
    return value.dtype.kind == "f" and bool(np.isfinite(value).all())


def _kept_finite(value: Any, changed: Array) -> Array:
    """Returns changed values, but where the largest of a dtype, as in masks, would become Inf."""
    return np.where(np.isfinite(changed), changed, value)
