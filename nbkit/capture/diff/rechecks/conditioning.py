"""Checks again what differs by more than its own rounding, with what the conditioning of the op allows it."""

from typing import NamedTuple

import numpy as np

from nbkit.capture.diff.pair import Pair, flat
from nbkit.capture.diff.rechecks.inner_rounding import inner_noise, noise_of_positions
from nbkit.capture.diff.rechecks.product_parts import factors_of, part_of
from nbkit.capture.diff.rechecks.scalars import noise_of_scalars
from nbkit.capture.replay.chunked import PIECE
from nbkit.numerics.noise_ratio import least_level, noise_ratios
from nbkit.numerics.precision import PRECISIONS, Array, Precision

# Perturbed runs of an op: so many, then so many in all if they were not enough.
DRAWS = (1, 2, 8, 16)


class Recheck(NamedTuple):
    """The full noise ratio of a tensor, and which of its elements are wrong; none where none is."""

    noise_ratio: float
    wrong: Array | None


def recheck(pair: Pair, precision: Precision, threshold: float) -> Recheck:
    """What is left of a difference beyond rounding once conditioning is known."""
    if factors_of(pair.call.traits) and (worst := _ratio_by_part(pair, precision, threshold)) <= threshold:
        return Recheck(worst, None)
    return _recheck_all(pair, precision, threshold)


def _ratio_by_part(pair: Pair, precision: Precision, threshold: float) -> float:
    """The noise ratio of a product, conditioning found where it is needed only; inf where that leaves it open."""
    level = least_level(pair.expected, precision, pair.allowed)
    doubt, worst = _in_doubt(pair, precision, threshold, level)
    part = part_of(pair.call, tuple(pair.results.all[pair.position].shape), doubt.places)
    if part is None:
        return np.inf
    its_worst = np.inf
    for draws in DRAWS:
        conditioning = flat(part.call.conditioning(draws, _smallest_change(precision))[0])[part.places]
        ratios = noise_ratios(doubt.actual, pair.expected[doubt.places], conditioning, precision, pair.allowed, level)
        its_worst = float(ratios.max())
        if its_worst <= threshold or its_worst == np.inf:
            break
    return max(worst, its_worst)


class Doubt(NamedTuple):
    """Which elements differ by more than their rounding, and their values."""

    places: Array
    actual: Array


def _in_doubt(pair: Pair, precision: Precision, threshold: float, level: float) -> tuple[Doubt, float]:
    """What needs conditioning, and the largest noise ratio of all else; only pieces that hold some are looked at."""
    count, worst = len(pair.expected), 0.0
    if pair.piece_noise is None:
        pieces = [(np.inf, 0, count)]
    else:
        allowed = pair.allowed.rounding
        starts = range(0, count, PIECE)
        pieces = [(noise / allowed, at, at + PIECE) for noise, at in zip(pair.piece_noise, starts, strict=True)]
    values, found = pair.actual_parts(), []
    for noise, start, end in pieces:
        if noise > threshold:
            actual = values(start, end)
            ratios = noise_ratios(actual, pair.expected[start:end], 0.0, precision, pair.allowed, level)
            is_in_doubt = ratios > threshold
            found.append(Doubt(start + np.flatnonzero(is_in_doubt), actual[is_in_doubt]))
            noise = ratios[~is_in_doubt].max(initial=0.0)
        worst = max(worst, float(noise))
    return Doubt(*map(np.concatenate, zip(*found, strict=True))), worst


def _recheck_all(pair: Pair, precision: Precision, threshold: float) -> Recheck:
    """A draw can miss how badly conditioned an element is: more are made while that may still change the verdict."""
    actual, eps = pair.actual, _smallest_change(precision)
    undrawn = inner_noise(pair.call, pair.position, eps) + noise_of_positions(pair.call, pair.position, eps)
    for draws in DRAWS:
        conditioning = flat(pair.call.conditioning(draws, eps)[pair.position], copy=False) + undrawn
        ratios = noise_ratios(actual, pair.expected, conditioning, precision, pair.allowed)
        worst = float(ratios.max(initial=0.0))
        if worst <= threshold or worst == np.inf:
            break
    if threshold < worst < np.inf:
        conditioning = conditioning + noise_of_scalars(pair.call, pair.position, pair.expected)
        ratios = noise_ratios(actual, pair.expected, conditioning, precision, pair.allowed)
        worst = float(ratios.max(initial=0.0))
    return Recheck(worst, ratios > threshold)


def _smallest_change(precision: Precision) -> float:
    return min(precision.eps, PRECISIONS["float32"].eps)
