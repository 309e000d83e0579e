import pandas as pd
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
    assert frames.keys() == {"ops", *({"samples", "timings"} if len(walls) > 1 else ())}


def test_times_of_a_run_are_those_of_the_same_ops_as_in_the_run_that_is_shown():
    one = {"ops": make_ops({"op": "a", "self_time_us": 1.0}, {"op": "b", "self_time_us": 2.0})}
    other = {"ops": make_ops({"op": "c"}, {"op": "b", "self_time_us": 8.0}, {"op": "a", "self_time_us": 4.0})}
    index, frames = repeat_frames([(one, 1.0), (other, 9.0)])
    assert index == 0
    assert frames["samples"][["op_id", "repeat", "self_time_us"]].values.tolist() == [
        [0, 0, 1.0], [1, 0, 2.0], [0, 1, 4.0], [1, 1, 8.0],
    ]  # fmt: skip
    assert frames["timings"]["iqr_us"].tolist() == [1.5, 3.0]


def _run(slow=None):
    """A step of three ops of 40 us; one of them may be hit by something that takes 10 ms."""
    rows = [{"op": "step", "level": "range", "self_time_us": 5.0, "total_time_us": 125.0}]
    rows += [
        {"op": f"aten.{name}", "parent_id": 0, "self_time_us": 40.0, "start_us": 1.0 + 40 * n}
        for n, name in enumerate("abc")
    ]
    ops = make_ops(*rows)
    if slow is not None:
        ops.loc[slow, ["total_time_us", "self_time_us"]] += 10_000.0
        ops.loc[0, "total_time_us"] += 10_000.0
    return {"ops": ops}, float(ops["total_time_us"].iloc[0])


def test_a_call_that_something_hit_in_one_run_has_its_median_in_every_run():
    # Each run is hit once, so that the one of median wall time has a call of 10 ms, too.
    _, frames = repeat_frames([_run(1), _run(2), _run(3)])
    assert frames["ops"]["self_time_us"].tolist() == [5.0, 40.0, 40.0, 40.0]
    assert frames["ops"]["total_time_us"].tolist() == [125.0, 40.0, 40.0, 40.0]
    assert frames["timings"]["median_us"].tolist() == [10_125.0, 40.0, 40.0, 40.0]


def test_an_op_that_few_runs_have_is_there_with_its_time_in_those():
    long, short = ({"ops": make_ops(*({"op": name, "self_time_us": 2.0} for name in names))} for names in ("ab", "a"))
    shown, frames = repeat_frames([(short, 1.0), (long, 2.0), (short, 3.0)])
    assert (shown, frames["ops"]["op"].tolist()) == (1, ["a", "b"])
    assert frames["ops"]["self_time_us"].tolist() == [2.0, 2.0]
    assert frames["timings"]["repeats"].tolist() == [3, 1]


def test_allocations_lie_within_the_calls_that_made_them():
    memory = pd.DataFrame({"time_us": [1.0, 21.0]})
    runs = [({**frames, "memory": memory}, wall) for frames, wall in (_run(1), _run(2), _run(3))]
    assert repeat_frames(runs)[1]["memory"]["time_us"].tolist() == [1.0, 21.0]
