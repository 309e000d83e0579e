"""The flame graph's state."""

import time

import numpy as np

from nbkit.views.flamegraph.data import column, flame_state
from tests.support.fakes import fake_trace, make_memory, make_ops, make_trace, small_trace, timed_trace


def test_threads_and_device_streams_are_tracks_of_their_own() -> None:
    state = flame_state(timed_trace())
    assert state["tracks"] == [
        {"name": "thread 0", "kind": "host"},
        {"name": "thread 1", "kind": "host"},
        {"name": "cuda:0 stream 7", "kind": "device"},
    ]
    assert column(state, "track").tolist() == [0, 0, 0, 0, 2, 0, 1, 0, 0]


def test_a_parent_on_another_track_is_none() -> None:
    assert column(flame_state(timed_trace()), "parent").tolist() == [-1, 0, 1, 2, -1, 0, -1, 0, 0]
    assert column(flame_state(small_trace()), "parent").tolist() == [-1, 0, -1, -1, -1, -1, -1, -1]


def test_texts_are_codes_and_missing_is_minus_one() -> None:
    state = flame_state(timed_trace())
    assert state["strings"]["source"] == ["train.py:7"]
    assert column(state, "source").tolist() == [-1, -1, 0, -1, -1, -1, -1, -1, -1]
    assert state["strings"]["op"][:3] == ["step", "Linear", "aten.mm.default"]
    assert column(state, "op").tolist() == [0, 1, 2, 3, 4, 5, 2, 6, 6]


def test_numbers_keep_missing_apart_from_zero() -> None:
    state = flame_state(timed_trace())
    assert column(state, "flops")[2] == 4096
    assert np.isnan(column(state, "flops")[3])
    assert column(state, "device_self")[4] == 40.0
    assert column(state, "self").tolist() == [10.0, 4.0, 20.0, 6.0, 40.0, 40.0, 30.0, 10.0, 5.0]


def test_unknown_times_have_no_width() -> None:
    state = flame_state(make_trace(make_ops({"total_time_us": None, "self_time_us": None})))
    assert [column(state, name)[0] for name in ("total", "self")] == [0.0, 0.0]


def test_modules_begin_with_their_model() -> None:
    rows = ({"model": model, "module": path} for model, path in (("A", ""), ("B", "fc"), ("A", "fc"), (None, None)))
    state = flame_state(make_trace(make_ops(*rows, {"model": "A", "module": ""})))
    assert state["strings"]["module"] == ["A", "B.fc", "A.fc"]
    assert column(state, "module").tolist() == [0, 1, 2, -1, 0]


def test_repeated_layers_are_told_by_their_whole_path() -> None:
    paths = ("h.0", "h.1", f"{'x' * 500}.0", f"{'x' * 500}.1")
    rows = [{"op": "Block", "model": "Net", "module": path, "level": "module"} for path in paths]
    # A path that is cut has no place for them.
    assert flame_state(make_trace(make_ops(*rows)))["repeats"] == {"Net.h.0": "*", "Net.h.1": "*"}


def test_memory_is_a_line_per_device_or_null() -> None:
    (line,) = flame_state(timed_trace())["memory"]
    assert line["device"] == "cpu"
    assert np.frombuffer(line["allocated"]).tolist() == [512.0, 2560.0, 512.0]
    assert flame_state(small_trace())["memory"] is None


def test_memory_without_totals_has_no_line() -> None:
    trace = timed_trace()
    trace.frames["memory"] = (
        make_memory((None, 1.0, 512)).assign(allocated_bytes=np.nan).astype({"allocated_bytes": "Int64"})
    )
    assert flame_state(trace)["memory"] == []


def test_names_are_on_one_line_and_cut() -> None:
    strings = flame_state(make_trace(make_ops({"op": "a\n\u202e" + "x" * 10_000})))["strings"]["op"]
    assert strings[0].startswith("a\\n\\u202ex")
    assert len(strings[0]) == 400


def test_incomplete_traces_say_so() -> None:
    state = flame_state(timed_trace(complete=False, skipped={"vmap": 2}))
    assert state["complete"] is False
    assert state["notes"] == ["INCOMPLETE: the recorded code did not run to its end", "skipped 2: vmap"]


def test_no_ops() -> None:
    state = flame_state(make_trace(make_ops()))
    assert (state["count"], state["tracks"], state["columns"]["parent"]) == (0, [], b"")


def test_a_million_ops_take_about_a_second() -> None:
    trace = fake_trace(1_000_000)
    start = time.process_time()
    assert flame_state(trace)["count"] == 1_000_000
    assert time.process_time() - start < 5.0  # 0.5 s on a free core


def test_names_that_are_the_same_once_cut_are_one() -> None:
    long = "x" * 500
    state = flame_state(make_trace(make_ops({"op": f"{long}a"}, {"op": "b"}, {"op": f"{long}c"})))
    assert [text[:2] for text in state["strings"]["op"]] == ["xx", "b"]
    assert column(state, "op").tolist() == [0, 1, 0]
