"""Patterns in which each element is made of the one at its own place: zero, scaled, offset, negated, rounded."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from nbkit.capture.diff.patterns.candidate import EXPLAINED, NEAR, Fit, Found, Wrong
from nbkit.numerics.metrics import Metrics
from nbkit.numerics.precision import PRECISIONS, Array

# Fewer numbers than these always have a factor that fits.
FEWEST = 4
LEFT = 1 - EXPLAINED
DIGITS = 6
# Formats by the bits of their mantissa; float16 has as many as TF32.
FORMATS = {7: "bfloat16", 10: "TF32 or float16", 23: "float32"}
# A result with fewer bits than its dtype has lost at least so many.
LOST_BITS = 4


def constant(wrong: Wrong) -> Iterator[Found]:
    """One number everywhere."""
    actual = wrong.actual
    first = actual[0]
    is_nan = first != first
    if len(actual) < FEWEST and first != 0:
        return
    if not (np.isnan(actual).all() if is_nan else (actual == first).all()):
        return
    evidence = Fit(1.0, 0.0).evidence
    if first == 0 or is_nan:
        yield Found("zero" if first == 0 else "nan", evidence)
    elif _varies(wrong.expected):
        yield Found("constant", evidence)


def _integer_offset(wrong: Wrong) -> Iterator[Found]:
    error = wrong.error
    if wrong.pair.row["dtype"] != "bool" and (error == error[0]).all() and _varies(wrong.expected):
        offset = float(error[0])
        yield Found("offset", {"offset": offset, "offset_spread": [offset] * 2, **Fit(1.0, 0.0).evidence})


def _varies(values: Array) -> bool:
    return len(values) >= FEWEST and bool((values != values[0]).any())


def linear(wrong: Wrong) -> Iterator[Found]:
    """A factor or an offset, if not both would do: then the numbers are too much alike to tell."""
    if wrong.precision is None:
        yield from _integer_offset(wrong)
        return
    metrics = Metrics(*wrong.pair.row["metrics"])
    count, square, error = metrics.numel, metrics.expected_square, metrics.sum_squared_error
    if not np.isfinite(float(error + square + metrics.inner)) or not error or not square:
        return
    factor, mean = float(metrics.inner / square), float(metrics.sum_error / count)
    # What either leaves of the error.
    of_factor, of_offset = metrics.actual_square - factor * metrics.inner, error - mean**2 * count
    variance = max(float(of_factor / square / count), 0.0)
    scaled = _scaled(wrong, factor, variance) if of_factor <= LEFT * error else None
    shifted = _offset(wrong, mean) if of_offset <= LEFT * error else None
    if scaled is not None and scaled.pattern == "negated":
        yield scaled
    elif count >= FEWEST and (scaled is None) != (shifted is None):
        yield scaled or shifted  # type: ignore[misc]  # one of them is there


def _scaled(wrong: Wrong, factor: float, variance: float) -> Found | None:
    expected, places = wrong.expected, wrong.places
    factor = -1.0 if abs(factor + 1) <= 2 * wrong.step else _known(factor, variance)
    if not factor or not wrong.may_be(expected[places] * factor):
        return None
    candidate, conditioning = expected * factor, wrong.conditioning * abs(factor)
    if factor == -1:
        return wrong.found("negated", {}, candidate, conditioning)
    some = places[np.abs(expected[places]) >= np.median(np.abs(expected[places]))]
    spread = _spread((wrong.actual[some] / expected[some]).real)
    return wrong.found("scaled", {"factor": factor, "factor_spread": spread}, candidate, conditioning)


def _offset(wrong: Wrong, mean: float) -> Found | None:
    size = np.abs(wrong.expected)
    # Where the reference is small the offset has been rounded least.
    weights = np.square(1 / (size + abs(mean)))
    total = float(weights.sum())
    offset = float(np.dot(weights, wrong.error.real) / total) if total else 0.0
    if not offset or not wrong.may_be(wrong.expected[wrong.places] + offset):
        return None
    shown, spread = _known(offset, wrong.step**2 / total), _spread(wrong.error[wrong.places].real)
    # What the offset was added to had been rounded already.
    conditioning = wrong.conditioning + wrong.step * size
    return wrong.found("offset", {"offset": shown, "offset_spread": spread}, wrong.expected + offset, conditioning)


def _known(value: float, variance: float) -> float:
    """A fitted number with as few digits as its variance allows."""
    short = (float(f"{value:.{digits}g}") for digits in range(1, DIGITS))
    return next((one for one in short if abs(one - value) <= 3 * variance**0.5), _figure(value))


def limited_values(wrong: Wrong) -> Iterator[Found]:
    """Numbers that end at one magnitude, or are zero where the reference is small; all others are right."""
    actual, expected, is_off = np.abs(wrong.actual), np.abs(wrong.expected), wrong.wrong
    if is_off.sum() < FEWEST or is_off.all():
        return
    limit = actual[is_off].max()
    # What is clipped by little is no more off than rounding allows.
    if (~is_off & (actual != limit) & (wrong.ratios > NEAR)).any():
        return
    evidence = {"element_fraction": _figure(float(is_off.mean())), **Fit(1.0, 0.0).evidence}
    if limit and (actual[is_off] == limit).all() and actual.max() == limit and (expected[is_off] > limit).all():
        yield Found("clipped", evidence)
    elif not limit and (actual[~is_off & (actual > 0)] > expected[is_off].max()).all() and actual.any():
        yield Found("flushed", evidence)


def rounded_result(wrong: Wrong) -> Iterator[Found]:
    """The reference in fewer bits than the dtype of the result has."""
    actual, expected = wrong.actual, wrong.expected
    if wrong.precision is None or np.iscomplexobj(actual) or len(actual) < FEWEST * FEWEST:
        return
    bits = _bits(actual[wrong.places])
    if not 0 < bits <= wrong.digits - LOST_BITS or _bits(actual) != bits:
        return
    for rounding, function in (("nearest", np.rint), ("cut", np.trunc)):
        candidate = in_bits(expected, bits, function)
        # A reference next to the middle between two numbers may go to either side.
        step = np.abs(actual - candidate) > 2.0**-bits * np.abs(expected)
        is_same = np.abs(actual - candidate) <= 2 * wrong.precision.eps * np.abs(expected)
        if np.mean(is_same) >= 0.98 and not step.any():
            same = Fit(1 - float(np.mean(~is_same)), 0.0)
            evidence = {"format": FORMATS.get(bits), "bits": bits, "rounding": rounding, **same.evidence}
            yield Found("rounded_result", evidence)
            return


def in_bits(values: Array, bits: int, function: Any = np.rint) -> Array:
    """float64 numbers with so many mantissa bits after the leading one."""
    with np.errstate(all="ignore"):
        mantissa, exponent = np.frexp(values)
        near = np.ldexp(function(np.ldexp(mantissa, bits + 1)), exponent - bits - 1)
    return np.where(np.isfinite(values), near, values)


def _bits(values: Array) -> int:
    """The most mantissa bits, after the leading one, that any of the numbers needs; 0 for none."""
    mantissa, _ = np.frexp(values[np.isfinite(values)])
    whole = np.ldexp(np.abs(mantissa), 53).astype(np.int64)
    whole = whole[whole > 0]
    if not len(whole):
        return 0
    lowest = np.bitwise_or.reduce(whole)
    return int(PRECISIONS["float64"].digits - (int(lowest & -lowest).bit_length() - 1))


def _spread(values: Array) -> list[float]:
    known = values[np.isfinite(values)]
    return [_figure(value) for value in np.quantile(known, (0.05, 0.95)).tolist()] if len(known) else []


def _figure(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")
