"""speedscope files follow https://www.speedscope.app/file-format-schema.json, and every op is in one once."""

import json
from collections import Counter

import numpy as np
import pytest

import nbkit
from nbkit import TraceError
from tests.readers.cuda_trace import AROUND, events
from tests.readers.exports import exported, profiled, threaded_step, written
from tests.support.fakes import fake_trace, make_ops, make_trace, small_trace

UNITS = {"none", "nanoseconds", "microseconds", "milliseconds", "seconds", "bytes"}


def exported_file(trace, path):
    """Returns the file's content, after it has passed the rules of the schema."""
    content = json.loads(trace.export_speedscope(path).read_text())
    assert {"$schema", "shared", "profiles"} <= content.keys()
    assert content["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    assert content.keys() <= {"$schema", "shared", "profiles", "name", "exporter", "activeProfileIndex"}
    for frame in content["shared"]["frames"]:
        assert isinstance(frame["name"], str) and frame.keys() <= {"name", "file", "line", "col"}
    for profile in content["profiles"]:
        check_profile(profile, len(content["shared"]["frames"]))
    return content


def check_profile(profile, frames):
    """Checks the rules for an evented profile: known fields, times that never fall, frames closed in reverse order."""
    assert profile.keys() == {"type", "name", "unit", "startValue", "endValue", "events"}
    assert profile["type"] == "evented" and profile["unit"] in UNITS
    times = [profile["startValue"], *(event["at"] for event in profile["events"]), profile["endValue"]]
    assert times == sorted(times)
    stack = []
    for event in profile["events"]:
        assert event.keys() == {"type", "at", "frame"} and 0 <= event["frame"] < frames
        if event["type"] == "O":
            stack.append(event["frame"])
        else:
            assert event["type"] == "C" and stack.pop() == event["frame"]
    assert stack == []


def opened(content):
    """Counts how often each frame is opened, by name."""
    names = [frame["name"] for frame in content["shared"]["frames"]]
    return Counter(names[e["frame"]] for p in content["profiles"] for e in p["events"] if e["type"] == "O")


def test_a_training_step_on_threads(tmp_path):
    recorded = profiled(threaded_step, all_threads=True)
    trace = nbkit.load(exported(recorded, tmp_path / "t.json"))
    content = exported_file(trace, tmp_path / "out.json")
    assert opened(content) == Counter(trace.ops["op"])
    assert [profile["name"] for profile in content["profiles"]] == ["thread 0", "thread 1", "thread 2"]


def test_a_profile_per_stream(tmp_path):
    trace = nbkit.load(written(tmp_path / "rank0.json", events(), **AROUND))
    content = exported_file(trace, tmp_path / "out.json")
    assert [p["name"] for p in content["profiles"]] == ["thread 0", "cuda:0 stream 7", "cuda:0 stream 16"]
    assert opened(content) == Counter(trace.ops["op"])
    assert content["name"] == "rank0.json"


def test_events_of_a_small_trace(tmp_path):
    ops = make_ops(
        {"op": "outer", "start_us": 0.0, "total_time_us": 5.0, "source": "a.py:7"},
        {"op": "inner", "start_us": 1.0, "total_time_us": 4.0, "parent_id": 0},
    )
    content = exported_file(make_trace(ops), tmp_path / "out.json")
    assert content["shared"]["frames"] == [{"name": "outer", "file": "a.py", "line": 7}, {"name": "inner"}]
    assert [tuple(event.values()) for event in content["profiles"][0]["events"]] == [
        ("O", 0.0, 0),
        ("O", 1.0, 1),
        ("C", 5.0, 1),
        ("C", 5.0, 0),
    ]


def test_ops_that_cross_get_a_profile_of_their_own(tmp_path):
    ops = make_ops(
        {"op": "early", "start_us": 0.0, "total_time_us": 5.0}, {"op": "late", "start_us": 3.0, "total_time_us": 5.0}
    )
    profiles = exported_file(make_trace(ops), tmp_path / "out.json")["profiles"]
    assert [(p["name"], p["startValue"], p["endValue"]) for p in profiles] == [
        ("thread 0", 0.0, 5.0),
        ("thread 0 (2)", 3.0, 8.0),
    ]


def test_an_optrace_is_exported_too(tmp_path):
    trace = fake_trace(3000)
    assert opened(exported_file(trace, tmp_path / "out.json")) == Counter(trace.ops["op"])


def test_what_has_no_timeline_is_refused(tmp_path):
    with pytest.raises(TraceError, match="has ops without a time"):
        make_trace(make_ops({"total_time_us": np.nan})).export_speedscope(tmp_path / "out.json")
    with pytest.raises(TraceError, match="has no ops, so there is nothing for speedscope to show"):
        make_trace(make_ops()).export_speedscope(tmp_path / "out.json")


def test_what_cannot_be_written_leaves_nothing(tmp_path):
    (tmp_path / "out.json").mkdir()
    with pytest.raises(TraceError, match="Cannot write the speedscope file to .*: it is a folder; give"):
        small_trace().export_speedscope(tmp_path / "out.json")
    assert [path.name for path in tmp_path.iterdir()] == ["out.json"]
