"""The named blocks of an optime summary."""

from nbkit.findings.finding import Finding, findings_frame
from nbkit.trace.trace import Trace
from nbkit.views.sections.difference import count_difference_sections
from nbkit.views.sections.time import time_sections
from tests.support.fakes import make_ops, make_trace

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


def test_blocks_are_listed_but_autograds_nodes_and_short_ones_are_not() -> None:
    (blocks,) = [section for section in time_sections(trace(), 5) if section.title == "Named blocks"]
    assert blocks.texts() == [["loader", "1", "600 µs", "60.0 %"]]


def test_the_longest_blocks_come_first_and_are_as_many_as_asked() -> None:
    blocks = [{**LOADER, "op": name, "total_time_us": time_us} for name, time_us in (("a", 20.0), ("b", 600.0))]
    timed = make_trace(make_ops(STEP, *blocks, {**LOADER, "op": "c", "total_time_us": 300.0}), verb="optime")
    (found,) = [section for section in time_sections(timed, 2) if section.title == "Named blocks"]
    assert [row[0] for row in found.texts()] == ["b", "c"]


def test_traces_that_differ_in_time_alone_do_not_differ_in_findings() -> None:
    titles = [section.title for section in count_difference_sections(trace(), trace(slow(600.0, None)), 5)]
    assert titles == []
