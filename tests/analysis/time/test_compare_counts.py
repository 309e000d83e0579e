"""What one frame has more of than another."""

import pandas as pd

from nbkit.analysis.time.compare_times import compare_counts


def test_rows_are_counted_by_their_keys():
    left = pd.DataFrame({"op": ["a", "a", "b", None], "n": [1, 2, 3, 4]})
    right = pd.DataFrame({"op": ["a", "c", "c", "c", None], "n": 0})
    found = compare_counts(left, right, ["op"])
    assert found.to_dict("list") == {"op": ["c", "a", "b"], "left_count": [0, 2, 1], "right_count": [3, 1, 0]}
    assert list(left) == ["op", "n"]


def test_equal_and_empty_frames_have_no_difference():
    frame = pd.DataFrame({"op": ["a", "b"], "phase": ["forward", None]})
    assert len(compare_counts(frame, frame.iloc[::-1], ["op", "phase"])) == 0
    assert len(compare_counts(frame.head(0), frame.head(0), ["op", "phase"])) == 0
    assert compare_counts(frame.head(0), frame, ["op", "phase"])["right_count"].tolist() == [1, 1]
