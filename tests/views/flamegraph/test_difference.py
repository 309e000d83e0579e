"""What the state of a difference says about the noise."""

from typing import Any

import numpy as np
import pytest

from nbkit.trace.trace import Trace
from nbkit.views.flamegraph.difference import PER_US, TYPES, flame_states
from tests.analysis.repeated import nested
from tests.support.fakes import fake_trace, make_ops, make_trace, timed_trace


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
    each = ["module host", "none host", "op host", "phase host"]
    assert sorted(state["views"]) == sorted([*each, *(f"{view} folded" for view in each)])
    assert (state["repeats"], state["notes"]) == ([10, 10], [])
    found = columns(state["views"]["none host"])
    beyond = np.flatnonzero(np.abs(found["change"]) > found["noise"])
    assert [(found["row"][at], found["up"][at], found["own"][at]) for at in beyond] == [(16, 0, 1)]
    assert {round(value * PER_US, 6) % 1 for value in (*found["usual"], *found["noise"])} == {0.0}


def test_layers_as_one_are_judged_by_the_noise_of_their_sum() -> None:
    views = difference(nested(2, slow="blocks.3", by=1.3), nested(1))["views"]
    found = columns(views["none host folded"])
    # The step, its twelve blocks as one, and their four ops.
    assert found["row"] == [0, 1, 2, 3, 4, 5]
    assert (found["own"][1], found["usual"][1]) == (1, pytest.approx(12 * 50, rel=0.05))
    # One block takes 15 us longer.
    beyond = np.flatnonzero(np.abs(found["change"]) > found["noise"])
    assert beyond.tolist() == [1] and found["change"][1] == pytest.approx(15, abs=5)


def layers(count: int, *, other: bool = False) -> Trace:
    """A forward pass of layers that are alike, of which the last one may have another op."""
    rows = []
    for number in range(count):
        path, op = f"h.{number}", "aten.tanh" if other and number == count - 1 else "aten.gelu"
        rows.append({"op": "Block", "level": "module", "phase": "forward", "model": "Net", "module": path})
        rows.append({"op": op, "phase": "forward", "model": "Net", "module": path, "parent_id": len(rows) - 1})
    return make_trace(make_ops(*rows))


def test_layers_are_one_where_the_same_ones_are_alike_on_both_sides() -> None:
    def repeats(now: Trace, base: Trace) -> list[dict[str, str]]:
        states = flame_states(now, base)
        return [states[side]["repeats"] for side in ("flame", "base")]

    assert repeats(layers(2), layers(2)) == [{"Net.h.0": "*", "Net.h.1": "*"}] * 2
    assert repeats(layers(3), layers(2)) == [{}, {}]
    assert repeats(layers(3), layers(3, other=True)) == [{}, {}]


def test_notes_are_those_of_the_comparison() -> None:
    (note,) = difference(nested(2, repeats=5), nested(1, repeats=5))["notes"]
    assert note.startswith("Only large changes are reliable with 5 repeats")


def test_without_repeats_of_both_nothing_is_judged() -> None:
    assert difference(nested(2, repeats=10), nested(1, repeats=1))["views"] == {}
    single = difference(fake_trace(1_000), fake_trace(1_000))
    assert (single["views"], single["repeats"]) == ({}, [1, 1])
    assert (single["single_factor"], single["single_share"]) == (2.0, 0.005)


def test_kernels_are_judged_on_their_own_clock_where_both_have_launched_some() -> None:
    runs = nested(2, self_device_time_us=10.0), nested(1, self_device_time_us=10.0)
    state = difference(*runs)
    assert len(state["views"]) == 16
    assert columns(state["views"]["op device"])["usual"][0] < columns(state["views"]["op host"])["usual"][0] / 5
    assert len(difference(runs[0], nested(1))["views"]) == 8


def test_noise_without_bound_is_packed_and_hides_every_change() -> None:
    runs = [nested(seed, repeats=2) for seed in (1, 2)]
    for run, time in zip(runs, (1e5, 1e99), strict=True):
        run.samples.loc[(run.samples["op_id"] == 3) & (run.samples["repeat"] == 1), "self_time_us"] = time
    found = columns(difference(*runs)["views"]["none host"])
    assert np.isfinite(found["noise"]).all()
    assert (np.abs(found["change"]) <= found["noise"]).all()
