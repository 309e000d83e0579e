"""What a memory snapshot shows: in text, in HTML, as a widget and in a report."""

import json

import pytest

import nbkit
from nbkit.views.plots import draw_memory, plot_memory
from nbkit.views.statements.memory import memory_sections
from nbkit.views.static_html.view import view_of
from tests.support.snapshots import Allocator, frame, grown, read, snapshot_of

PEAK = "Peak of 12.0 KiB on cuda:0 after 10.0 µs, by train.py:8 (50.0 %), train.py:2 (33.3 %), train.py:7 (16.7 %)."
END = "At the end 6.00 KiB are in use on cuda:0, by train.py:2 (66.7 %), train.py:7 (33.3 %)."
UNUSED = "1.99 MiB (99.7 %) of 2.00 MiB reserved on cuda:0 are not allocated; the largest free block has 1.99 MiB."


def test_the_brief_tells_peak_end_and_what_is_not_used():
    brief = read(grown()).brief()
    assert brief.startswith(PEAK) and brief.endswith("load snapshot.pickle: 2 allocations, cuda:0.")
    for sentence in (PEAK, END, UNUSED):
        assert sentence in brief
    assert "Next: " not in brief
    assert json.loads(read(grown()).brief(form="json"))["verdict"][0] == PEAK


def test_the_summary_has_the_tables():
    text = read(grown()).summary()
    assert "load snapshot.pickle: 2 allocations, 1 free, device cuda:0" in text.splitlines()
    titles = ("memory at its peak", "held at the peak, by line", "in use at the end, by line", "allocator at the end")
    assert all(title in text for title in titles)
    assert "self time" not in text


def test_a_failed_request_stands_first():
    allocator = Allocator()
    allocator.fail(1 << 30, 0, [frame("main", 3)])
    trace = read(snapshot_of(allocator))
    assert "1 error." in trace.summary() or "The snapshot holds no memory" in trace.summary()
    assert trace.findings["source"].tolist() == ["train.py:3"]


def test_memory_without_a_stack_says_so():
    allocator = Allocator()
    allocator.alloc(4096, [frame("main", 3)])
    allocator.alloc(2048)
    lines, end = (
        [[row[0] for row in section.rows] for section in memory_sections(read(snapshot_of(allocator)), 10)][index]
        for index in (1, 2)
    )
    assert lines == end == ["train.py:3", "(no stack)"]


def test_a_notebook_shows_the_flame_graph_below_the_tables():
    trace = read(grown())
    widget = view_of(trace).widget(trace)
    assert PEAK in widget.html and "<svg" in widget.html and "Held at the peak, by line" in widget.html
    assert widget.parts == ["flamegraph"]
    bundle, _ = trace._repr_mimebundle_()
    assert "<svg" in bundle["text/html"] and "Held at the peak, by line" in bundle["text/html"]


def test_a_report_says_things_once_and_has_picture_flame_graph_and_chart(tmp_path):
    nbkit.opreport(read(grown()), path=tmp_path / "report.html")
    html = (tmp_path / "report.html").read_text()
    body = html.partition("<script")[0] + html
    assert html.count(PEAK) == 1 and html.count(END) == 1 and html.count(UNUSED) == 1
    assert 'data-widget="flamegraph"' in html and 'data-widget="op_table"' in html
    assert "What was held at the peak: a box is a call" in html
    assert "Step time" not in body and "Slowest" not in body.partition('data-widget="op_table"')[0]


def test_paths_of_the_machine_stay_out_of_a_report_and_what_has_no_stack_is_no_flame_graph(tmp_path):
    allocator, bare = Allocator(), Allocator()
    bare.alloc(2048)
    allocator.alloc(8, [frame("main", 3, "/Users/somebody/secret/project/train.py")])
    nbkit.opreport(read(snapshot_of(allocator)), read(snapshot_of(bare)), path=tmp_path / "report.html")
    html = (tmp_path / "report.html").read_text()
    assert "somebody" not in html
    assert "(no stack)" in html and html.count('data-widget="flamegraph"') == 1


def test_the_chart_has_what_is_allocated_and_what_is_reserved():
    trace = read(grown())
    labels = ["cuda:0, peak 12.0 KiB", "cuda:0, reserved 2.00 MiB"]
    assert [line.name for line in plot_memory(trace).data] == labels
    assert [text.get_text() for text in draw_memory(trace).axes[0].get_legend().get_texts()] == labels
    assert list(plot_memory(trace).data[0].y) == pytest.approx([6 / 1024, 12 / 1024, 6 / 1024])


def test_a_snapshot_of_nothing_says_so():
    text = read({"segments": [], "device_traces": []}).summary()
    assert "The snapshot holds no memory: nothing was allocated on a device when it was taken." in text
    assert "The snapshot has no events" in text


def test_what_modules_held_at_the_peak_is_told_if_any_did():
    torch_nn = "/env/site-packages/torch/nn/modules"
    linear, call = frame("forward", 125, f"{torch_nn}/linear.py"), frame("_call_impl", 1789, f"{torch_nn}/module.py")
    allocator = Allocator()
    allocator.alloc(3072, [linear, call, frame("main", 1)])
    allocator.alloc(1024, [frame("main", 2)])
    by_module = next(each for each in memory_sections(read(snapshot_of(allocator)), 10) if "module" in each.title)
    assert by_module.title == "Held at the peak, by module"
    assert [[row[0], *row[-3:]] for row in by_module.rows] == [
        ["linear::forward", 1, 3072, 0.75],
        ["outside modules", 1, 1024, 0.25],
    ]
    assert not any("module" in each.title for each in memory_sections(read(grown()), 10))
