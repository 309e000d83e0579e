"""The verdicts of a trace in a few words."""

import pytest

from nbkit.findings.finding import Finding, findings_frame
from nbkit.schema import FINDINGS, TENSORS
from nbkit.trace.trace import Trace
from nbkit.views.panels.panel import Contents
from nbkit.views.report.chapter import chapters
from nbkit.views.report.front.first_screen import Chip, chips_of
from tests.findings.training.audits import parameters
from tests.support.diff_traces import faulty_trace
from tests.support.fakes import make_ops, make_tensors, make_trace, small_trace, timed_trace


def chips(trace: Trace) -> list[Chip]:
    (chapter,) = chapters([Contents(trace)])
    return chips_of(chapter)


def with_findings(trace: Trace, *rules: str, severity: str = "error") -> Trace:
    found = findings_frame([Finding(rule, severity, "m", "do") for rule in rules])
    return Trace({**trace.frames, "findings": found}, trace.meta)


def test_a_trace_that_looked_at_nothing_has_none() -> None:
    trace = make_trace(make_ops({"op": "aten.mm.default"}))
    trace.frames["tensors"] = trace.frames["tensors"].head(0)
    assert chips(trace) == []


def test_opcheck_says_in_how_many_ops_what_begins() -> None:
    checked = small_trace(verb="opcheck", checked_tensors=1033)
    assert chips(checked) == [Chip("no NaN or Inf begins in 1,033 results", "good")]
    assert chips(with_findings(checked, "input", "nan", "nan", "underflow")) == [
        Chip("NaN begins in 2 ops", "bad"),
        Chip("values underflow in 1 op", "bad"),
        Chip("NaN or Inf comes in at 1 op", "bad"),
    ]
    # What overflows under a GradScaler.
    assert chips(with_findings(checked, "inf", severity="hint")) == [Chip("Inf begins in 1 op", "")]


def test_values_that_were_read_are_no_judgement_but_for_nan() -> None:
    trace = make_trace(make_ops({"op": "aten.mm.default"}))
    tensors = make_tensors((0, "output", 1), (0, "output", 2), (0, "output", 3))
    counts = {"nan_count": [2, 0, 0], "inf_count": [0, 1, 0]}
    trace.frames["tensors"] = TENSORS.frame({**tensors.to_dict("list"), **counts, "norm": [1.0, 1.0, 1.0]})
    assert chips(trace) == [Chip("NaN in 1 of 3 results", "bad"), Chip("Inf in 1 of 3 results", "")]


def test_mismatches_are_counted_among_the_compared_tensors() -> None:
    trace = faulty_trace()
    compared = trace.diffs[trace.diffs["status"] != "skipped"]
    wrong = int((compared["status"] == "mismatch").sum())
    assert wrong > 1
    assert chips(trace) == [Chip(f"{wrong} mismatches in {len(compared)} tensors", "bad")]
    compared = compared[compared["status"] == "ok"].reset_index(drop=True)
    right = Trace({**trace.frames, "diffs": compared, "findings": FINDINGS.frame()}, trace.meta)
    assert chips(right) == [Chip(f"0 mismatches in {len(compared)} tensors", "good")]


@pytest.mark.parametrize(
    ("severity", "expected"),
    [
        ("error", Chip("2 errors in training", "bad")),
        ("warning", Chip("2 warnings in training", "bad")),
        ("hint", Chip("no error or warning in 3 parameters", "good")),
    ],
)
def test_an_audit_counts_errors_and_warnings(severity: str, expected: Chip) -> None:
    trace = with_findings(small_trace(verb="opaudit"), "a", "b", severity=severity)
    trace.frames["parameters"] = parameters({}, {}, {}, {"tied_with": "weight"})  # the last is one of the others
    assert chips(trace) == [expected]


def test_a_timing_counts_its_hints_and_an_early_end_comes_first() -> None:
    assert chips(timed_trace()) == []
    trace = with_findings(timed_trace(complete=False), "item", severity="hint")
    assert chips(trace) == [Chip("incomplete", "bad"), Chip("1 hint at time or memory to save", "")]
