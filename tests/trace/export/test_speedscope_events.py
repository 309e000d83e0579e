"""The whole file for speedscope of a few ops."""

import json
from pathlib import Path

from nbkit.trace.export.speedscope import SCHEMA, write_speedscope
from tests.support.fakes import make_ops


def test_ops_open_and_close_in_order_of_time(tmp_path: Path) -> None:
    ops = make_ops(
        {"op": "step", "start_us": 1.0, "total_time_us": 10.0, "self_time_us": 4.0, "source": "a.py:7"},
        {"op": "mm", "start_us": 1.0, "total_time_us": 4.0, "parent_id": 0, "source": "odd"},
        {"op": "mm", "start_us": 5.0, "total_time_us": 2.0, "parent_id": 0, "source": "odd"},
        {"op": "gemm", "start_us": 6.0, "total_time_us": 3.0, "level": "kernel", "device": "cuda:0", "thread": 7},
    )
    path = write_speedscope(ops, {"verb": "optime", "versions": {"nbkit": "1.2"}}, tmp_path / "a.json")
    data = json.loads(path.read_text())
    host, device = data.pop("profiles")
    assert data == {
        "$schema": SCHEMA,
        "exporter": "nbkit 1.2",
        "name": "optime",
        "activeProfileIndex": 0,
        "shared": {
            "frames": [{"name": "step", "file": "a.py", "line": 7}, {"name": "mm", "file": "odd"}, {"name": "gemm"}]
        },
    }
    events = [(event["type"], event["at"], event["frame"]) for event in host["events"]]
    assert events == [("O", 1.0, 0), ("O", 1.0, 1), ("C", 5.0, 1), ("O", 5.0, 1), ("C", 7.0, 1), ("C", 11.0, 0)]
    assert (host["type"], host["unit"], host["startValue"], host["endValue"]) == ("evented", "microseconds", 1.0, 11.0)
    assert [event["at"] for event in device["events"]] == [device["startValue"], device["endValue"]] == [6.0, 9.0]
