"""The section of an optime summary that says where time could be saved, and the named blocks."""

from nbkit.findings.finding import Finding, findings_frame
from nbkit.trace.trace import Trace
from nbkit.views.sections.difference import count_difference_sections
from nbkit.views.sections.time import time_sections
from nbkit.views.static_html.static_table import static_table
from nbkit.views.static_html.text import summary
from tests.fakes import make_ops, make_trace

STEP = {"level": "range", "op": "step", "phase": "other", "total_time_us": 1_000.0, "self_time_us": 100.0}
LOADER = {"level": "range", "op": "loader", "phase": "other", "parent_id": 0, "total_time_us": 600.0}
NODE = {"level": "range", "op": "autograd::engine::evaluate_function: Mul", "parent_id": 0, "total_time_us": 300.0}


def trace(*findings: Finding) -> Trace:
    ops = make_ops(STEP, LOADER, NODE, {**LOADER, "op": "short", "total_time_us": 2.0})
    plain = make_trace(ops, verb="optime")
    return Trace({**plain.frames, "findings": findings_frame(findings)}, plain.meta)


def slow(effect_us: float, source: str | None) -> Finding:
    text = "x = x.float()" if source else None
    place = {"op_id": 1, "op": "aten.to", "module": "fc", "source": source, "source_text": text}
    return Finding("casts", "hint", "8 casts take long", "Cast once.", **place, count=8, effect_us=effect_us)


def test_what_takes_most_stands_first_with_its_share_and_its_line() -> None:
    section, *_ = time_sections(trace(slow(100.0, None), slow(600.0, "train.py:7")), 5)
    assert section.title == "Where time could be saved"
    assert section.texts() == [
        ["train.py:7", "60.0 %", "600 µs", "8", "x = x.float()", "8 casts take long", "Cast once."],
        ["fc", "10.0 %", "100 µs", "8", None, "8 casts take long", "Cast once."],
    ]


def test_a_step_without_findings_has_no_such_section() -> None:
    assert "Where time could be saved" not in [section.title for section in time_sections(trace(), 5)]


def test_blocks_are_listed_but_autograds_nodes_and_short_ones_are_not() -> None:
    (blocks,) = [section for section in time_sections(trace(), 5) if section.title == "Named blocks"]
    assert blocks.texts() == [["loader", "1", "600 µs", "60.0 %"]]


def test_text_and_html_show_it_within_their_width() -> None:
    long = slow(600.0, "a/very/long/path/of/a/project/train.py:7")
    lines = summary(trace(long)).splitlines()
    assert max(map(len, lines[2:])) <= 100
    assert "    x = x.float()" in lines or any("x = x.float()" in line for line in lines)
    assert "<caption>Where time could be saved</caption>" in static_table(trace(long))


def test_traces_that_differ_in_time_alone_do_not_differ_in_findings() -> None:
    titles = [section.title for section in count_difference_sections(trace(), trace(slow(600.0, None)), 5)]
    assert titles == []
