"""Calls as the options of a verb name them."""

from nbkit.capture.operators.bisect.chosen import in_call_numbers


def test_numbers_in_a_row_are_ranges_and_others_stand_alone():
    keys = [("mm", 7), ("add", 2), ("mm", 3), ("mm", 4), ("mm", 5), ("mm", 0), ("mm", 8)]
    assert in_call_numbers(keys) == {"add": "2", "mm": "0,3:6,7:9"}
