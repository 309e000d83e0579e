"""What a snapshot held at its peak as a flame graph, and its stacks over time as one."""

import copy

import pandas as pd
from torch.cuda import _memory_viz

import nbkit
from nbkit.views.flamegraph.held import held_boxes, held_svg, with_stack_timeline
from tests.support.fakes import make_ops
from tests.support.snapshots import Allocator, frame, grown, read, snapshot_of


def test_a_box_is_as_wide_as_the_bytes_allocated_inside_the_call():
    boxes = held_boxes(read(grown()))
    names = ["name", "depth", "left_bytes", "held_bytes", "own_bytes"]
    assert boxes[names].to_numpy().tolist() == [
        ["cuda:0", 0, 0.0, 12288.0, 0.0],
        ["main", 1, 0.0, 12288.0, 0.0],
        ["step", 2, 0.0, 8192.0, 0.0],
        ["work", 3, 0.0, 6144.0, 6144.0],
        ["build", 2, 8192.0, 4096.0, 4096.0],
        ["work", 3, 6144.0, 2048.0, 2048.0],
    ]


def test_the_boxes_are_those_of_torch_s_own_flame_graph_where_nothing_is_freed():
    allocator = Allocator()
    for line in (3, 4, 4, 5):
        allocator.alloc(line * 1000, [frame("leaf", line), frame("mid", line // 2), frame("main", 1)])
    snapshot = snapshot_of(allocator)
    expected: dict[str, int] = {}
    for text in _memory_viz.memory(copy.deepcopy(snapshot), format_flamegraph=str).splitlines():
        path, _, size = text.rpartition(" ")
        if ";active_allocated;" in path and "<gaps>" not in path:
            parts = path.split(";")[2:]
            for depth in range(1, len(parts) + 1):
                expected[";".join(parts[:depth])] = expected.get(";".join(parts[:depth]), 0) + int(size)
    boxes = held_boxes(read(snapshot)).iloc[1:]
    found, open_calls = {}, {}
    for name, source, depth, held in boxes[["name", "source", "depth", "held_bytes"]].itertuples(index=False):
        open_calls[depth] = f"{source}:{name}"
        found.setdefault((depth, open_calls[depth]), held)
    by_depth = {(path.count(";") + 1, path.rpartition(";")[2]): size for path, size in expected.items()}
    assert found == by_depth


def test_what_has_no_stack_is_a_box_of_its_own():
    allocator = Allocator()
    allocator.alloc(100)
    assert held_boxes(read(snapshot_of(allocator)))["name"].tolist() == [
        "cuda:0",
        "no stack is known, such as of what was allocated before the first event",
    ]


def test_names_of_a_file_cannot_leave_the_picture():
    allocator = Allocator()
    allocator.alloc(1 << 20, [frame("<script>alert(1)</script>", 1, "<img src=x>")])
    html = held_svg(read(snapshot_of(allocator)))
    assert "<script" not in html and "<img" not in html and "&lt;script&gt;" in html
    assert "1.00 MiB held, 1.00 MiB of it its own, 100.0 %" in html


def test_a_snapshot_without_events_has_no_picture():
    assert held_svg(read({"segments": [], "device_traces": []})) == ""


def test_the_flame_graph_of_a_snapshot_is_its_stacks_above_its_memory():
    widget = nbkit.FlameGraph(read(grown()))
    assert widget.flame["count"] == 4
    assert widget.flame["strings"]["op"] == ["main", "step", "work"]
    assert [device["device"] for device in widget.flame["memory"]] == ["cuda:0"]
    assert "their times are those between allocations" in " ".join(widget.flame["notes"])


def test_other_traces_stay_as_they_are():
    trace = nbkit.Trace({"ops": make_ops({"op": "aten.mm.default"})})
    assert with_stack_timeline(trace) is trace
    assert isinstance(with_stack_timeline(read(grown())).ops, pd.DataFrame)
