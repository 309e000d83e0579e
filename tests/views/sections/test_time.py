"""The tables of an optime summary."""

import re

from nbkit.trace.trace import Trace
from nbkit.views.sections.time import time_sections
from nbkit.views.sections.writers import to_html
from nbkit.views.static_html.static_table import static_table
from nbkit.views.static_html.text import summary
from tests.support.fakes import make_ops, make_trace, timed_trace


def rows(trace: Trace, title: str) -> list[list[str | None]]:
    (found,) = [section for section in time_sections(trace, 5) if section.title == title]
    return found.texts()


def test_phases_add_up_to_the_whole_of_all_threads() -> None:
    assert rows(timed_trace(), "Phases") == [
        ["forward", "3", "30.0 µs", "24.0 %", "40.0 µs"],
        ["backward", "2", "70.0 µs", "56.0 %", None],
        ["optimizer", "2", "15.0 µs", "12.0 %", None],
        ["other", "1", "10.0 µs", "8.0 %", None],
    ]


def test_shares_of_ops_are_of_the_whole_not_of_the_ops() -> None:
    assert rows(timed_trace(), "Slowest ops") == [
        ["aten.mm.default", "2", "50.0 µs", "40.0 %", "40.0 µs"],
        ["aten.add_.Tensor", "2", "15.0 µs", "12.0 %", None],
    ]


def test_time_between_the_ops_is_named() -> None:
    assert rows(timed_trace(), "In ops and between them") == [
        ["in ops", "65.0 µs", "68.4 %"],
        ["main thread waiting for others", "30.0 µs", "31.6 %"],
        ["Python and torch between ops", "24.0 µs", "25.3 %"],
        ["launching work on a device", "6.00 µs", "6.3 %"],
    ]


def test_kernels_repeats_and_memory_are_shown_where_they_were_recorded() -> None:
    assert rows(timed_trace(), "Slowest kernels") == [["gemm", "cuda:0", "1", "40.0 µs", "100.0 %"]]
    assert rows(timed_trace(), "Devices") == [["cuda:0", "1", "40.0 µs", "60.0 µs", "40.0 %"]]
    assert rows(timed_trace(), "Repeats of the step") == [["5 repeats", "100 µs", "4.00 µs", "97.0 µs"]]
    assert rows(timed_trace(), "Memory at its peak") == [["cpu", "2.50 KiB", "8.00 µs", "aten.mm.default"]]
    assert rows(timed_trace(), "Held at the peak of memory") == [
        ["fc", "cpu", "forward", "1", "2.00 KiB", "80.0 %"],
        ["outside modules", "cpu", None, "1", "512 B", "20.0 %"],
    ]


def test_what_was_not_recorded_has_no_table() -> None:
    root = {"level": "range", "op": "step", "total_time_us": 2.0, "self_time_us": 1.0}
    titles = [section.title for section in time_sections(make_trace(make_ops(root, {"parent_id": 0})), 5)]
    assert titles == ["Slowest ops", "Slowest modules", "Phases", "In ops and between them"]
    assert time_sections(make_trace(make_ops()), 5) == []


def test_text_says_what_ran_how_often_and_what_recording_cost() -> None:
    lines = summary(timed_trace(name="step", skipped={"vmap": 2})).splitlines()
    (head,) = (number for number, line in enumerate(lines) if line.startswith("optime step: "))
    assert lines[head] == (
        "optime step: 4 aten ops, 1 module call, 1 named range, 1 API call, 1 driver call, 1 kernel, "
        "wall time 101 µs, overhead about 9.00 µs (8.9 %), median of 5 repeats after 2 to warm up, "
        "device cpu, torch 2.13.0"
    )
    assert lines[0].startswith("100 µs per step (median of 5 runs, IQR 4.00 µs): forward 24 %, backward 56 %, ")
    assert re.split("  +", lines[lines.index("", head) + 1]) == ["phase", "calls", "self time", "share", "device time"]
    assert lines[-1] == "skipped 2: vmap"


def test_html_has_picture_tables_and_slowest_calls() -> None:
    html = static_table(timed_trace())
    assert html.count("<svg") == 1
    for title in ("Slowest kernels", "Memory at its peak", "Slowest calls"):
        assert f"<caption>{title}</caption>" in html
    assert "input shapes" in html


def test_hostile_names_stay_text() -> None:
    name = "</td></ScRiPt><script>alert(1)</script>"
    ops = make_ops({"op": name, "module": name, "model": name, "level": "range", "source": name, "phase": name})
    html = static_table(make_trace(ops, verb="optime"))
    assert "<script" not in html
    assert "<script" not in to_html(time_sections(make_trace(ops), 5))
