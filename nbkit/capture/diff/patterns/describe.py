"""Finds what a wrong result looks like: the first pattern that explains all of the difference."""

from collections.abc import Iterator

import numpy as np

from nbkit.capture.diff.pair import Pair
from nbkit.capture.diff.patterns.calls import other_eps, other_values, rounded_inputs
from nbkit.capture.diff.patterns.candidate import LARGEST, Found, Wrong
from nbkit.capture.diff.patterns.places import place_patterns, reordered
from nbkit.capture.diff.patterns.regions import region_pattern
from nbkit.capture.diff.patterns.values import constant, limited_values, linear, rounded_result
from nbkit.numerics.precision import Array


def described(pair: Pair, wrong: Array) -> Found | None:
    """What a result that was judged wrong looks like; None where no simple pattern explains it."""
    if pair.actual.dtype != pair.expected.dtype or not len(pair.expected):
        return None
    with np.errstate(all="ignore"):
        return next(_patterns(Wrong(pair, wrong)), None)


def _patterns(wrong: Wrong) -> Iterator[Found]:
    yield from constant(wrong)
    if len(wrong.actual) > LARGEST:
        yield from linear(wrong)
        return
    # Before a factor or an offset: that of an op which did nothing is no news.
    yield from other_values(wrong)
    yield from linear(wrong)
    yield from other_eps(wrong)
    yield from place_patterns(wrong)
    yield from limited_values(wrong)
    if (region := region_pattern(wrong)) is not None:
        yield region
    yield from reordered(wrong)
    yield from rounded_result(wrong)
    yield from rounded_inputs(wrong)
