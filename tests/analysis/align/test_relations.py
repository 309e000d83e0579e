"""Relations: in which order and shape one tensor holds another one's elements, and how far two are apart."""

import numpy as np
import pytest

from nbkit.analysis.align.relations import in_order, permutation_of, relative_error
from tests.analysis.align.makers import numbers


@pytest.mark.parametrize("axes", [(1, 0, 2), (2, 0, 1), (2, 1, 0)])
def test_a_transposed_tensor_has_its_axes_named(axes):
    left = numbers(0, 2, 3, 4)
    relation = permutation_of(left, left.transpose(axes), 1e-6)
    assert (relation.name, relation.axes, relation.order) == ("permute", axes, f"axes {list(axes)} of [2, 3, 4]")


def test_an_axis_may_be_split_before_it_is_moved():
    left = numbers(0, 5, 6)  # tokens, heads * size
    right = left.reshape(5, 2, 3).transpose(1, 0, 2)
    relation = permutation_of(left, right, 1e-6)
    assert (relation.split, relation.axes) == ((5, 2, 3), (1, 0, 2))
    np.testing.assert_array_equal(relation.to_right(left), right)
    np.testing.assert_array_equal(relation.to_left(right), left)


def test_large_tensors_are_told_apart_by_a_few_elements_first():
    left = numbers(0, 24, 32, 12)
    assert permutation_of(left, left.transpose(1, 2, 0), 1e-6).axes == (1, 2, 0)
    moved = left.copy()
    moved[:2] = left[[1, 0]]
    assert permutation_of(left, moved.transpose(1, 2, 0), 1e-6) is None


def test_of_very_many_orders_the_first_are_tried():
    left = numbers(0, *[2] * 7)
    near, far = (0, 1, 2, 3, 6, 5, 4), (6, 5, 4, 3, 2, 1, 0)
    assert permutation_of(left, left.transpose(near), 1e-6).axes == near
    assert permutation_of(left, left.transpose(far), 1e-6) is None


def test_other_elements_are_no_permutation():
    assert permutation_of(numbers(0, 3, 4), numbers(1, 4, 3), 1e-3) is None


def test_elements_in_order_are_the_same_cast_or_reshaped():
    assert in_order((2, 3), (2, 3)).name == "same"
    assert in_order((2, 3), (2, 3), is_cast=True).name == "cast"
    assert in_order((2, 3), (6,)).name == "reshape"


@pytest.mark.parametrize(
    ("left", "right", "error"),
    [
        ([np.nan, 1.0], [np.nan, 1.0], 0.0),
        ([np.nan, 1.0], [np.inf, 1.0], np.inf),
        ([np.nan, 1.0], [1.0, np.nan], np.inf),
        ([np.inf, 1.0], [-np.inf, 1.0], np.inf),
        ([np.inf, 2.0], [np.inf, 3.0], 0.5),
        ([0.0, 0.0], [0.0, 0.0], 0.0),
        ([0.0, 0.0], [0.0, 1e-9], np.inf),
        ([3.0, 4.0], [3.0, 4.5], 0.1),
        ([1e300, 0.0], [1.5e300, 0.0], 0.5),
        ([1e300, np.nan], [1.5e300, np.nan], 0.5),
        ([1e300, -np.inf], [1.5e300, -np.inf], 0.5),
        ([0.0, 0.0], [1e300, 0.0], np.inf),
        ([0.0, np.inf], [1e300, np.inf], np.inf),
        ([0.0, 0.0], [0.0, 0.0, 0.0], np.inf),
    ],
)
def test_the_error_is_relative_to_the_left_side(left, right, error):
    assert relative_error(np.array(left), np.array(right)) == pytest.approx(error)
