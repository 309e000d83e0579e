"""Tests columns built from numbers."""

import numpy as np
import pandas as pd

from nbkit.capture.frames.string_columns import followed, numbered, numbered_objects, text_column


class Uncomparable:
    """Refuses to be compared or hashed, as a user's object may."""

    __hash__ = None

    def __eq__(self, other):
        raise TypeError("not comparable")


def test_values_are_numbered_in_order_of_appearance():
    numbers, distinct = numbered(["b", "a", "b", None])
    assert (numbers.tolist(), distinct) == ([0, 1, 0, 2], ["b", "a", None])


def test_objects_are_told_apart_by_identity():
    one, other = Uncomparable(), Uncomparable()
    numbers, distinct = numbered_objects([one, other, one])
    assert numbers.tolist() == [0, 1, 0]
    assert distinct[0] is one and distinct[1] is other


def test_pointers_are_followed_to_their_end():
    assert followed(np.array([0, 0, 1, 2, 4, 4])).tolist() == [0, 0, 0, 0, 4, 4]


def test_negative_codes_are_null():
    assert pd.Series(text_column(np.array([1, -1, 0]), ["a", "b"])).fillna("null").tolist() == ["b", "null", "a"]
