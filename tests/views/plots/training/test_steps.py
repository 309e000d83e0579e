"""Curves over the steps of an audit."""

from typing import Any

import pytest

from nbkit.errors import OptionError
from nbkit.schema import FINDINGS, STEPS
from nbkit.trace.trace import Trace
from nbkit.views.plots import plot_steps

LOSSES = [4.0, 2.0, 1.0, 0.5, 9.0, float("nan")]


def audited(*findings: tuple[str, str, int]) -> Trace:
    known = {"learning_rate": 0.1, "optimizer_steps": 1, "skipped_steps": 0, "held_bytes": 8, "error": None}
    rows = [
        {
            **known, "step": step, "loss": loss, "gradient_norm": 10.0 ** -step, "wall_us": 1000.0 * (step + 1),
            "update_fraction": 0.25 if step == 2 else None, "anomaly": None,
        }
        for step, loss in enumerate(LOSSES)
    ]  # fmt: skip
    found = [_finding(*finding) for finding in findings]
    return Trace({"steps": STEPS.frame(rows), "findings": FINDINGS.frame(found)}, {"verb": "opaudit"})


def test_memory_and_use_of_the_device_are_drawn_where_they_are_known() -> None:
    trace = audited()
    steps = trace.steps.assign(process_bytes=2**20 * trace.steps["step"], device_fraction=0.5)
    trace.frames["steps"] = STEPS.check(steps.astype({"process_bytes": "Int64"}))
    *_, process, device = plot_steps(trace).data
    assert list(process.y) == [0, 1, 2, 3, 4, 5] and list(device.y) == [0.5] * 6


def _finding(rule: str, severity: str, step: int) -> dict[str, Any]:
    names = [name for name in FINDINGS.frame().columns if name not in ("rule", "severity", "step")]
    return {**dict.fromkeys(names), "rule": rule, "severity": severity, "step": step, "message": "", "count": 1}


def test_each_curve_has_the_values_of_its_column_and_gaps_where_they_are_missing() -> None:
    figure = plot_steps(audited())
    loss, norm, update, time = figure.data
    assert list(loss.x) == [0, 1, 2, 3, 4, 5] and list(loss.y) == [*LOSSES[:5], None]
    assert list(norm.y) == [10.0**-step for step in range(6)]
    assert (list(update.x), list(update.y), update.mode) == ([2], [0.25], "markers")
    assert list(time.y) == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    assert "between points steps were not looked at, or gave NaN or Inf" in figure.layout.title.text.replace(
        "<br>", " "
    )
    titles = [figure.layout[f"yaxis{axis}"].title.text for axis in ("", "2", "3", "4")]
    assert titles == ["loss", "gradient norm", "update / weight", "step time (ms)"]
    assert [figure.layout[f"yaxis{axis}"].type for axis in ("", "2", "4")] == ["linear", "log", "linear"]
    assert figure.layout.xaxis4.title.text == "step" and "a gap is NaN, Inf or unknown" in figure.layout.title.text


def test_errors_and_warnings_are_marked_at_their_steps_in_each_curve_and_named() -> None:
    trace = audited(("loss_spike", "warning", 4), ("nan", "error", 5), ("never_called", "hint", 0), ("nan", "error", 5))
    layout = plot_steps(trace).layout
    assert [shape.x0 for shape in layout.shapes] == [4.0, 5.0] * 4
    assert "step 4: loss_spike; step 5: nan;" in layout.title.text.replace("<br>", " ")
    axes = plot_steps(trace).static().axes
    assert [line.get_xdata()[0] for line in axes[0].lines[1:]] == [4.0, 5.0]
    assert axes[0].lines[0].get_ydata()[:5].tolist() == LOSSES[:5]


def test_steps_with_findings_beyond_those_named_are_counted() -> None:
    title = plot_steps(audited(*(("nan", "error", step) for step in range(6)))).layout.title.text
    assert "step 3: nan; and 2 further steps with findings" in title.replace("<br>", " ")


def test_a_trace_without_steps_says_what_records_them() -> None:
    with pytest.raises(OptionError, match="has no steps; `python -m nbkit audit SCRIPT --step FUNCTION` records them"):
        plot_steps(Trace({}, {"verb": "opaudit"}))
