"""A wrong result and its reference, and how well something else explains the result.

A pattern is named only if it leaves no more than rounding, element by element, explains EXPLAINED of the squared error,
and is nearer to the result than the reference is in as many elements as can tell: a wrong name costs more than none.
A few hundred elements are looked at first, so that what is no pattern costs a few passes over the elements.
"""

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from nbkit.capture.diff.pair import Pair, flat
from nbkit.capture.diff.rechecks.each_element import is_well_determined, least
from nbkit.numerics.metrics import agreed, rms
from nbkit.numerics.noise_ratio import noise_ratios
from nbkit.numerics.precision import PRECISIONS, Array

# The noise ratio of what a pattern may leave; that of a correct result is of order 1.
NEAR = 4.0
EXPLAINED = 0.9
# A difference may be this many times the rounding that stands between a pattern and the reference.
CLEAR = 4.0
SAMPLE = 256
SEED = 7
# Elements beyond which only what needs few passes is asked.
LARGEST = 1 << 22


class Fit(NamedTuple):
    """How well a pattern explains a difference."""

    explained: float
    worst: float

    @property
    def evidence(self) -> dict[str, Any]:
        """The figures that all patterns have."""
        return {
            "explained_fraction": float(f"{self.explained:.6g}"),
            "residual_noise_ratio": float(f"{self.worst:.3g}"),
        }


class Found(NamedTuple):
    """A pattern by its name, with what shows it."""

    pattern: str
    evidence: dict[str, Any]


class Wrong:
    """A wrong result beside its reference, flat; `wrong` are the elements that were judged to be it."""

    def __init__(self, pair: Pair, wrong: Array) -> None:
        self.pair, self.wrong = pair, wrong
        self.actual, self.expected, self.precision = pair.actual, pair.expected, pair.precision
        self.shape = tuple(pair.results.all[pair.position].shape)
        self.eps = 0.0 if pair.precision is None else min(pair.precision.eps, PRECISIONS["float32"].eps)

    @property
    def step(self) -> float:
        """The eps of the result's dtype."""
        return 0.0 if self.precision is None else self.precision.eps

    @property
    def digits(self) -> int:
        """Mantissa bits of the result; of integers as many as those of the widest dtype."""
        return 52 if self.precision is None else self.precision.digits

    @cached_property
    def conditioning(self) -> Array | float:
        """What a change of the inputs by eps does to each element."""
        if self.precision is None:
            return 0.0
        call = self.pair.call
        # All draws there have been, or a first one.
        return flat(call.conditioning(0 if any(call.spreads) else 1, self.eps)[self.pair.position], copy=False)

    @cached_property
    def error(self) -> Array:
        """Signed error of each element, 0 where NaN or Inf stand on both sides."""
        if self.precision is None:
            error: Array = self.actual.astype(np.float64) - self.expected.astype(np.float64)
            return error
        left, right = agreed(self.actual, self.expected, self.precision)
        return np.asarray(left - right)

    @cached_property
    def ratios(self) -> Array:
        """The noise ratio of each element."""
        return self.ratios_of(self.expected, self.conditioning)

    @cached_property
    def places(self) -> Array:
        """Elements that are looked at first, half of them wrong ones."""
        generator = np.random.default_rng(SEED)
        wrong = np.flatnonzero(self.wrong)
        count = len(self.actual)
        if count <= SAMPLE:
            return np.arange(count)
        chosen = wrong if len(wrong) <= SAMPLE // 2 else generator.choice(wrong, SAMPLE // 2, replace=False)
        return np.unique(np.concatenate([chosen, generator.integers(0, count, SAMPLE // 2)]))

    def may_be(self, candidate: Array, places: Array | None = None) -> bool:
        """Whether a candidate for the elements at `places` is near enough to look at all of it."""
        places = self.places if places is None else places
        if self.precision is None:
            return bool(np.array_equal(self.actual[places], candidate))
        conditioning = self.conditioning[places] if isinstance(self.conditioning, np.ndarray) else 0.0
        # Of what was scaled the level is, too; conditioning may stand at other places in the candidate.
        level = self._level + rms(candidate) * self.precision.eps
        ratios = self.ratios_of(candidate, conditioning, places, level)
        return bool(np.mean(ratios <= 2 * NEAR) >= EXPLAINED)

    def fit(
        self, candidate: Array, conditioning: Array | float | None = None, chosen: Array | None = None
    ) -> Fit | None:
        """How well a candidate explains the result, at the chosen elements if not at all; None if it does not."""
        conditioning = self.conditioning if conditioning is None else conditioning
        places = np.arange(len(candidate)) if chosen is None else np.flatnonzero(chosen)
        actual, error = self.actual[places], self.error[places]
        if not len(places):
            return None
        candidate = candidate[places]
        conditioning = conditioning[places] if isinstance(conditioning, np.ndarray) else conditioning
        if self.precision is None:
            return Fit(1.0, 0.0) if np.array_equal(actual, candidate) else None
        worst = float(self.ratios_of(candidate, conditioning, places).max(initial=0.0))
        if not worst <= NEAR or not self._is_nearer(candidate, conditioning, places):
            return None
        left, right = agreed(actual, candidate, self.precision)
        remaining, whole = _square(left - right), _square(error)
        # A difference that holds NaN or Inf is explained if nothing of it is left.
        explained = 1 - remaining / whole if 0 < whole < np.inf else float(not remaining or not np.isfinite(whole))
        return Fit(explained, worst) if explained >= EXPLAINED else None

    def found(
        self,
        pattern: str,
        evidence: dict[str, Any],
        candidate: Array,
        conditioning: Array | float | None = None,
    ) -> Found | None:
        """The pattern with its evidence and that of the fit; None where the candidate does not explain the result."""
        fit = self.fit(candidate, conditioning)
        return None if fit is None else Found(pattern, {**evidence, **fit.evidence})

    def ratios_of(
        self,
        candidate: Array,
        conditioning: Array | float,
        places: Array | None = None,
        level: float | None = None,
    ) -> Array:
        """The noise ratios of the result beside a candidate at these places; by their own size in ops that allow it."""
        actual = self.actual if places is None else self.actual[places]
        if self.precision is None:
            return np.where(actual == candidate, 0.0, np.inf)
        ratios = noise_ratios(actual, candidate, conditioning, self.precision, self.pair.allowed, level)
        if not is_well_determined(self.pair.call.traits):
            return ratios
        left, right = agreed(actual, candidate, self.precision)
        own = np.abs(left - right) / (self.precision.eps * np.abs(right) + conditioning + least(self.precision))
        return np.asarray(np.maximum(ratios, np.nan_to_num(own, nan=0.0)))

    @cached_property
    def _level(self) -> float:
        assert self.precision is not None
        allowed = self.pair.allowed
        scale = self.precision.eps * allowed.rounding * np.abs(self.expected)
        return rms(scale + allowed.conditioning * np.nan_to_num(self.conditioning, posinf=0.0))

    def _is_nearer(self, candidate: Array, conditioning: Array | float, places: Array) -> bool:
        """Whether the result is nearer to a candidate than to the reference, where these are clearly apart."""
        assert self.precision is not None
        actual, expected = self.actual[places], self.expected[places]
        rounding = self.precision.eps * np.maximum(np.abs(candidate), np.abs(expected)) + conditioning
        apart = np.abs(candidate - expected) > CLEAR * rounding
        nearer = np.abs(actual - candidate)[apart] < np.abs(actual - expected)[apart]
        return not len(nearer) or bool(nearer.mean() >= EXPLAINED)


def _square(values: Array) -> float:
    return float(np.vdot(values, values).real)
