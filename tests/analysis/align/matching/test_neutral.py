"""A weight of ones leaves its input as it is: the product corresponds to the other side's product nevertheless."""

import numpy as np
import pytest

from nbkit.analysis.align.align import align
from tests.analysis.align.makers import execution, numbers

X = numbers(0, 4, 6)


def scaled(weight, *, has_more):
    """The code of the two sides differs, so that no place tells what corresponds."""
    more = [("more", "Neg", ["x"], -X)] if has_more else []
    y = X * weight
    start = [("x", None, [], X), ("layer.weight", None, [], weight), *more]
    return execution(*start, ("scaled", "Mul", ["x", "layer.weight"], y), ("y", "Exp", ["scaled"], np.exp(y)))


@pytest.mark.parametrize("is_swapped", [False, True])
def test_the_product_with_ones_is_paired_with_that_of_another_weight(is_swapped):
    ones = np.ones(6, np.float32)
    sides = [scaled(ones, has_more=False), scaled(ones * np.float32(1.3), has_more=True)]
    found = align(*(sides[::-1] if is_swapped else sides))
    names = [[result.name for result in side.results] for side in (found.left, found.right)]
    pairs = {(names[0][match.left], names[1][match.right]) for match in found.matches.all}
    assert ("scaled", "scaled") in pairs
    assert not {("scaled", "x"), ("x", "scaled")} & pairs
