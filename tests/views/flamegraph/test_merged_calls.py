"""Equal call paths as one frame."""

import numpy as np

from nbkit.views.flamegraph.merged_calls import merged_calls


def test_rows_of_one_kind_in_one_frame_are_one_frame() -> None:
    parent = np.array([-1, 0, 0, 1, 2, 0, -1])
    kinds = np.array([7, 3, 3, 5, 5, 5, 7])
    frames, above = merged_calls(parent, kinds)
    assert frames.tolist() == [0, 1, 1, 3, 3, 2, 0]
    assert above.tolist() == [-1, 0, 0, 1]


def test_no_rows_have_no_frames() -> None:
    frames, above = merged_calls(np.empty(0, np.int64), np.empty(0, np.int64))
    assert (len(frames), len(above)) == (0, 0)
