"""Tests a flat list of records read as columns."""

import pytest

from nbkit.capture.frames.flat_list import FlatList


def test_columns_take_every_field_in_turn():
    first, second = object(), object()
    flat = FlatList([1, first, -2, second, True, first], ("number", "thing"))
    assert flat.count == 3
    assert flat.integers("number").tolist() == [1, -2, 1]
    numbers, things = flat.objects("thing")
    assert numbers.tolist() == [0, 1, 0]
    assert things[0] is first and things[1] is second


def test_what_is_no_integer_is_refused():
    with pytest.raises(TypeError):
        FlatList([1, None], ("number",)).integers("number")
