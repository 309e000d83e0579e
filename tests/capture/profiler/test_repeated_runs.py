import pytest

from nbkit.capture.profiler.repeated_runs import repeat_frames
from tests.support.fakes import make_ops


@pytest.mark.parametrize(
    ("walls", "shown"),
    [((30.0,), 0), ((30.0, 10.0), 1), ((30.0, 10.0, 20.0), 2), ((50.0, 10.0, 40.0, 30.0, 20.0), 3)],
)
def test_the_run_of_median_wall_time_is_shown(walls, shown):
    runs = [({"ops": make_ops({"op": "a", "self_time_us": wall})}, wall) for wall in walls]
    index, frames = repeat_frames(runs)
    assert index == shown
    assert frames.keys() == ({"samples", "timings"} if len(walls) > 1 else set())


def test_times_of_a_run_are_those_of_the_same_ops_as_in_the_run_that_is_shown():
    one = {"ops": make_ops({"op": "a", "self_time_us": 1.0}, {"op": "b", "self_time_us": 2.0})}
    other = {"ops": make_ops({"op": "c"}, {"op": "b", "self_time_us": 8.0}, {"op": "a", "self_time_us": 4.0})}
    index, frames = repeat_frames([(one, 1.0), (other, 9.0)])
    assert index == 0
    assert frames["samples"][["op_id", "repeat", "self_time_us"]].values.tolist() == [
        [0, 0, 1.0], [1, 0, 2.0], [0, 1, 4.0], [1, 1, 8.0],
    ]  # fmt: skip
    assert frames["timings"]["iqr_us"].tolist() == [1.5, 3.0]
