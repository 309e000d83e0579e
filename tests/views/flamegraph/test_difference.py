"""What the state of a difference says about the noise."""

from typing import Any

import numpy as np

from nbkit.views.flamegraph.difference import PER_US, TYPES, flame_states
from tests.analysis.repeated import nested
from tests.support.fakes import fake_trace, timed_trace


def difference(now: Any, base: Any) -> dict[str, Any]:
    state = flame_states(now, base)["difference"]
    assert state is not None
    return state


def columns(view: dict[str, Any]) -> dict[str, list[float]]:
    return {name: np.frombuffer(view["columns"][name], kind).tolist() for name, kind in TYPES.items()}


def test_alone_there_is_no_difference() -> None:
    assert flame_states(timed_trace(), None)["difference"] is None


def test_with_repeats_every_grouping_is_judged() -> None:
    state = difference(nested(2, slow="blocks.3", by=1.3), nested(1))
    assert sorted(state["views"]) == ["module host", "none host", "op host", "phase host"]
    assert (state["repeats"], state["notes"]) == ([10, 10], [])
    found = columns(state["views"]["none host"])
    beyond = np.flatnonzero(np.abs(found["change"]) > found["noise"])
    assert [(found["row"][at], found["up"][at], found["own"][at]) for at in beyond] == [(16, 0, 1)]
    assert {round(value * PER_US, 6) % 1 for value in (*found["usual"], *found["noise"])} == {0.0}


def test_notes_are_those_of_the_comparison() -> None:
    (note,) = difference(nested(2, repeats=5), nested(1, repeats=5))["notes"]
    assert note.startswith("5 repeats tell only large differences from noise")


def test_without_repeats_of_both_nothing_is_judged() -> None:
    assert difference(nested(2, repeats=10), nested(1, repeats=1))["views"] == {}
    single = difference(fake_trace(1_000), fake_trace(1_000))
    assert (single["views"], single["repeats"]) == ({}, [1, 1])
    assert (single["single_factor"], single["single_share"]) == (2.0, 0.005)


def test_kernels_are_judged_on_their_own_clock_where_both_have_launched_some() -> None:
    runs = nested(2, self_device_time_us=10.0), nested(1, self_device_time_us=10.0)
    state = difference(*runs)
    assert len(state["views"]) == 8
    assert columns(state["views"]["op device"])["usual"][0] < columns(state["views"]["op host"])["usual"][0] / 5
    assert len(difference(runs[0], nested(1))["views"]) == 4


def test_noise_without_bound_is_packed_and_hides_every_change() -> None:
    runs = [nested(seed, repeats=2) for seed in (1, 2)]
    for run, time in zip(runs, (1e5, 1e99), strict=True):
        run.samples.loc[(run.samples["op_id"] == 3) & (run.samples["repeat"] == 1), "self_time_us"] = time
    found = columns(difference(*runs)["views"]["none host"])
    assert np.isfinite(found["noise"]).all()
    assert (np.abs(found["change"]) <= found["noise"]).all()
