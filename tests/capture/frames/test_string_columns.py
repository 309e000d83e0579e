"""Tests columns built from numbers."""

import numpy as np
import pandas as pd

from nbkit.capture.frames.string_columns import followed, numbered, text_column


def test_values_are_numbered_in_order_of_appearance():
    numbers, distinct = numbered(["b", "a", "b", None])
    assert (numbers.tolist(), distinct) == ([0, 1, 0, 2], ["b", "a", None])


def test_pointers_are_followed_to_their_end():
    assert followed(np.array([0, 0, 1, 2, 4, 4])).tolist() == [0, 0, 0, 0, 4, 4]


def test_negative_codes_are_null():
    assert pd.Series(text_column(np.array([1, -1, 0]), ["a", "b"])).fillna("null").tolist() == ["b", "null", "a"]
