"""Columns of a flat list: the library and Python read the same."""

import numpy as np
import pytest

from nbkit.capture.frames.flat_list import FlatList
from nbkit.capture.native.library import library
from tests.capture.frames.test_string_columns import Uncomparable

FIELDS = ("number", "thing")
THINGS = [Uncomparable(), Uncomparable(), None]
VALUES = [part for row in range(50) for part in (2**40 * (row - 20), THINGS[row * row % 7 % 3])]


@pytest.mark.parametrize("values", [VALUES, VALUES[:2], []])
def test_columns_are_those_of_python(values):
    expected, actual = FlatList(values, FIELDS), FlatList(values, FIELDS, library())
    np.testing.assert_array_equal(actual.integers("number"), expected.integers("number"), strict=True)
    (numbers, things), (expected_numbers, expected_things) = actual.objects("thing"), expected.objects("thing")
    np.testing.assert_array_equal(numbers, expected_numbers, strict=True)
    assert list(map(id, things)) == list(map(id, expected_things))


def test_columns_can_be_written_to():
    column = FlatList([3, 4], ("number",), library()).integers("number")
    column[0] = 5
    assert column.tolist() == [5, 4]


@pytest.mark.parametrize("value", [None, "1", 2**70])
def test_what_is_no_int64_is_refused(value):
    with pytest.raises((TypeError, OverflowError)):
        FlatList([1, value], ("number",), library()).integers("number")
