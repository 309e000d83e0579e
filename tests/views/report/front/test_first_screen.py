"""What a reader of a report sees first."""

import re

import pytest
import torch
from torch import nn

import nbkit
from nbkit.findings.finding import Finding, findings_frame
from nbkit.trace.trace import Trace
from nbkit.views.panels.panel import Contents
from nbkit.views.report.chapter import chapters
from nbkit.views.report.front.first_screen import MOST_FINDINGS, first_screen, worst_findings
from nbkit.views.report.front.steps import recorded_steps
from nbkit.views.report.opreport import report_page
from tests.support.fakes import small_trace, timed_trace


def with_findings(trace: Trace, *severities: str) -> Trace:
    found = [Finding(f"rule{n}", severity, f"So it is {n}", "") for n, severity in enumerate(severities)]
    return Trace({**trace.frames, "findings": findings_frame(found)}, trace.meta)


def screen(*traces: Trace) -> str:
    parts = chapters([Contents(trace) for trace in traces])
    return first_screen(recorded_steps(parts), parts)


def words(html: str) -> str:
    return " ".join(re.sub(r"<.*?>", " ", html).split())


def test_it_says_what_ran_how_long_and_what_was_found() -> None:
    timed = timed_trace(name="run", devices=["cuda:0"], machine="Linux x86_64, Some CPU")
    text = words(screen(timed, small_trace(name="run", verb="opcheck", checked_tensors=7, devices=[])))
    assert text.startswith(
        "2 modules · on cuda:0 · Linux x86_64, Some CPU · nbkit 0.1.0 · torch 2.13.0 · 2026-01-02 03:04:05 UTC "
        "Nothing wrong found. Not looked at: kernels (nbkit.opdiff), gradients (nbkit.opaudit). "
        "100 µs per step, the median of 5 runs (IQR 4.00 µs, min 97.0 µs) "
        "no NaN or Inf begins in 7 results 1. optime run 2. opcheck run Phases "
    )


def test_of_several_timings_of_one_step_each_has_its_time() -> None:
    text = words(screen(*[timed_trace(name="run")] * 2))
    time = "100 µs per step, the median of 5 runs (IQR 4.00 µs, min 97.0 µs)"
    assert f"1. optime run : {time} 2. optime run : {time}" in text


def test_the_worst_findings_of_all_traces_come_first_and_are_not_repeated_below() -> None:
    hints = with_findings(timed_trace(name="run"), *["hint"] * 4)
    errors = with_findings(small_trace(name="run", verb="opcheck", checked_tensors=7), "warning", "error")
    parts = chapters([Contents(hints), Contents(errors)])
    (run,) = recorded_steps(parts)
    order = [(chapter.anchor, entry.severity) for chapter, entry in worst_findings(run)]
    assert order == [("t2", "error"), ("t2", "warning"), ("t1", "hint"), ("t1", "hint"), ("t1", "hint")]
    assert len(order) == MOST_FINDINGS and "1 further finding below." in words(screen(hints, errors))
    page = report_page([Contents(hints), Contents(errors)])
    for number in range(4):
        assert page.count(f"So it is {number}.") == (2 if number < 2 else 1)  # each trace has its own 0 and 1


def test_the_same_finding_of_two_traces_is_shown_once_for_each() -> None:
    at, nowhere = (Finding("nan", "error", "So it is", "", op_id=op_id) for op_id in (1, None))
    traces = [small_trace(verb="opcheck", checked_tensors=7) for _ in range(2)]
    for trace, finding in zip(traces, (at, nowhere), strict=True):
        trace.frames["findings"] = findings_frame([finding])
    assert report_page([Contents(trace) for trace in traces]).count("So it is.") == 2


def test_nothing_wrong_is_said_only_where_something_judged() -> None:
    assert "Nothing wrong" not in screen(timed_trace())
    assert "Nothing wrong found." in screen(small_trace(verb="opcheck", checked_tensors=7))
    assert "Nothing wrong" not in screen(with_findings(small_trace(verb="opcheck", checked_tensors=7), "hint"))


def test_one_trace_has_no_contents_and_several_steps_have_headings() -> None:
    assert "<nav" not in screen(timed_trace()) and "<h2>" not in screen(timed_trace())
    text = screen(timed_trace(name="a"), timed_trace(name="b"))
    assert re.findall("<h2>(.*?)</h2>", text) == ["a, Net", "b, Net"]
    assert "<nav" in text


@pytest.mark.parametrize("what", ["machine", "devices", "created", "versions"])
def test_hostile_facts_are_text(what: str) -> None:
    value = "<img src=x>"
    meta = {"devices": [value], "versions": {"torch": value}}.get(what, value)
    assert "<img" not in screen(timed_trace(**{what: meta})) and "&lt;img src=x&gt;" in screen(
        timed_trace(**{what: meta})
    )


def test_what_two_traces_find_at_one_place_stands_once() -> None:
    there = Finding("nan", "error", "So it is", "", op_id=1, module="fc")
    traces = [small_trace(verb="opcheck", checked_tensors=7), small_trace(verb="optrace")]
    for trace in traces:
        trace.frames["findings"] = findings_frame([there, Finding("nan", "error", "It is elsewhere", "", op_id=2)])
    text = words(screen(*traces))
    assert (text.count("So it is."), text.count("It is elsewhere.")) == (1, 2)
    assert "further finding" not in text and text.count("NaN begins in 2 ops") == 1


def test_the_first_screen_says_in_order_what_is_wrong_how_long_it_takes_and_where_to_look() -> None:
    wrong = Finding("nan", "error", "aten.mm is NaN", "", op_id=1, source="train.py:7", source_text="y = x / n")
    checked = small_trace(verb="opcheck", name="run", checked_tensors=7)
    checked.frames["findings"] = findings_frame([wrong])
    text = words(screen(timed_trace(name="run"), checked))
    parts = ("error, nan : aten.mm is NaN. train.py:7: y = x / n", "100 µs per step", "NaN begins in 1 op", "1. optime")
    places = [text.index(part) for part in parts]
    assert places == sorted(places)
    assert "Step time not measured" not in text and "(nbkit.opcheck)" not in text


def test_a_finding_stands_once_though_two_traces_counted_it_in_different_steps() -> None:
    place = {"op_id": 1, "op": "aten.sub.Tensor", "module": None, "phase": "forward", "source": "a.py:7"}
    found = [Finding("broadcast", "warning", f"It broadcasts{more}", "", **place) for more in ("", " (2 of 2 calls)")]
    traces = [
        Trace({**small_trace(name="run").frames, "findings": findings_frame([one])}, {"name": "run"}) for one in found
    ]
    (run,) = recorded_steps(chapters([Contents(trace) for trace in traces]))
    assert [entry.rule for _, entry in worst_findings(run)] == ["broadcast"]


def test_phases_and_ops_are_shares_of_the_whole_step_as_in_the_brief_of_opdoctor() -> None:
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    optimizer = torch.optim.SGD(model.parameters(), 1e-2, momentum=0.9)

    def step() -> None:
        optimizer.zero_grad()
        model(torch.ones(2, 4)).square().mean().backward()
        optimizer.step()

    doctor = nbkit.opdoctor(warmup=1, repeats=3).run(step)
    phases = doctor.meta["step"]["phases"]
    for traces in ([doctor], [doctor, nbkit.optime(repeats=3).run(step)]):
        text = words(screen(*traces))
        shown = dict(re.findall(r"(forward|backward|optimizer|other) ([\d.]+) %", text[text.index("Phases") :]))
        assert list(shown) == list(phases) and "other" in shown
    alone = words(screen(doctor))
    assert "outside modules" not in alone  # its rows have none of Python's time in modules
    shown = dict(re.findall(r"(forward|backward|optimizer|other) ([\d.]+) %", alone[alone.index("Phases") :]))
    whole = sum(phases.values())
    assert {name: float(share) for name, share in shown.items()} == pytest.approx(
        {name: 100 * time_us / whole for name, time_us in phases.items()}, abs=0.06
    )
    slowest = doctor.meta["step"]["slowest_modules"]
    assert len(slowest) == 4  # the root and what it holds
    for _, path, time_us in slowest:
        shares = re.findall(rf"{path or re.escape('(root)')} [\d.]+ [mµ]s, ([\d.]+) %", alone)
        assert float(shares[0]) == pytest.approx(100 * time_us / whole, abs=0.06)
