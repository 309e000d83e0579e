"""Patterns of differences in words: how many indices and elements are named."""

import pytest

from nbkit.numerics.difference_patterns import pattern_text

ROWS = {"axis": 1, "content": "wrong"}


@pytest.mark.parametrize(
    ("pattern", "evidence", "text"),
    [
        ("rows", {**ROWS, "indices": [2], "count": 1}, "is right except at index 2 of axis 1"),
        ("rows", {**ROWS, "indices": [2, 5, 7], "count": 3}, "is right except at indices 2, 5 and 7 of axis 1"),
        ("rows", {**ROWS, "indices": [*range(2, 9)], "count": 7}, "is right except at indices 2 to 8 of axis 1"),
        (
            "rows",
            {**ROWS, "indices": [*range(2, 18)], "count": 1200, "content": "NaN"},
            "is right except at 1,200 indices (2, 3, 4, 5, ...) of axis 1, which are NaN",
        ),
        (
            "elements",
            {"indices": [[1, 2], [3, 4]], "count": 2, "content": "zero"},
            "is right except for 2 elements at [1, 2] and [3, 4], which are zero",
        ),
        ("elements", {"indices": [[1]] * 9, "count": 9, "content": "wrong"}, "is right except for 9 elements"),
        ("offset", {"offset": -1234567.0}, "is the reference - 1.23457e+06"),
        ("rounded_result", {"format": None, "bits": 3, "rounding": "cut"}, "is the reference cut to 3 mantissa bits"),
        ("stale", {"earlier_op_id": None}, "is that of an earlier call of the op"),
        (
            "accumulated",
            {"earlier_op_id": 4},
            "is the reference added to the result of an earlier call of the op (op 4)",
        ),
    ],
)
def test_a_pattern_is_the_predicate_of_a_sentence(pattern, evidence, text):
    assert pattern_text(pattern, evidence) == text
