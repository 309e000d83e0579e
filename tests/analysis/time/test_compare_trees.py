"""Frames of a tree judged by the noise of their repeats."""

import numpy as np
import pandas as pd

from nbkit.analysis.time.compare_trees import FRAME_DIFFS, compare_trees
from nbkit.analysis.time.timed_pair import timed_pair
from nbkit.trace.trace import Trace
from tests.analysis.repeated import TREE_OPS, nested

GELU = "aten.gelu.default"


def compared(left: Trace, right: Trace) -> pd.DataFrame:
    """The frames of the ops: each row of both traces is a frame of its own."""
    rows = np.arange(len(left.ops))
    parent = left.ops["parent_id"].to_numpy(np.int64, na_value=-1)
    return FRAME_DIFFS.check(compare_trees(timed_pair(left, right), (rows, rows), parent))


def beyond(table: pd.DataFrame) -> list[int]:
    return table.loc[table["change_us"].abs() > table["noise_us"], "frame"].tolist()


def block(number: int, op: str = "") -> int:
    """The frame of a block of `nested`, or of an op in it."""
    return 1 + number * (1 + len(TREE_OPS)) + (1 + TREE_OPS.index(op) if op else 0)


def test_equal_runs_have_no_frame_beyond_noise() -> None:
    assert [seed for seed in range(30) if beyond(compared(nested(seed), nested(seed + 100)))] == []


def test_what_a_frame_holds_makes_it_longer_as_far_as_it_is_beyond_noise() -> None:
    for seed in range(10):
        table = compared(nested(seed), nested(seed + 100, slow="blocks.3", part=GELU, by=2.0))
        assert beyond(table) == [block(3), block(3, GELU)]
        assert not table["is_own"].any()
        change, usual = table.loc[block(3), ["change_us", "usual_us"]]
        assert abs(change - 100.0) < 25.0 and abs(usual - 450.0) < 25.0


def test_a_frame_whose_own_time_alone_is_beyond_noise_is_judged_by_that() -> None:
    """The block's 10 us are lost in the noise of its ops, but not in that of its own time."""
    for seed in range(10):
        table = compared(nested(seed), nested(seed + 100, slow="blocks.3", by=1.3))
        assert beyond(table) == [block(3)]
        assert table["is_own"].tolist() == [frame == block(3) for frame in table["frame"]]
        assert abs(table.loc[block(3), "usual_us"] - 50.0) < 5.0


def test_where_the_own_times_of_all_frames_lie_apart_none_is_beyond_noise() -> None:
    """Runs may differ by what their repeats share, such as where memory lies."""
    for seed in range(10):
        right = nested(seed + 100)
        factors = np.random.default_rng(seed).uniform(0.8, 1.2, len(right.ops))
        right.samples["self_time_us"] *= factors[right.samples["op_id"]]
        assert beyond(compared(nested(seed), right)) == []


def test_frames_of_one_trace_and_rows_of_none_are_left_out() -> None:
    left, right = nested(1), nested(2)
    rows = np.arange(len(left.ops))
    parent = left.ops["parent_id"].to_numpy(np.int64, na_value=-1)
    fewer = np.where(rows == block(2, GELU), -1, rows)
    table = compare_trees(timed_pair(left, right), (rows, fewer), parent)
    assert table["frame"].tolist() == [row for row in rows if row != block(2, GELU)]
    assert beyond(table)[:2] == [block(2)]


def test_without_repeats_nothing_is_beyond_noise() -> None:
    table = compared(nested(1, repeats=1), nested(2, slow="blocks.3", by=9.0))
    assert table["noise_us"].isna().all() and not table["is_own"].any()


def test_what_takes_next_to_nothing_of_the_step_is_marked() -> None:
    runs = nested(1), nested(2)
    for run in runs:
        run.samples.loc[run.samples["op_id"] == block(5, GELU), "self_time_us"] = 2.0
    table = compared(*runs)
    assert table.loc[table["is_small"], "frame"].tolist() == [block(5, GELU)]
