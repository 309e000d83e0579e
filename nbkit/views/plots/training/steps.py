"""Curves over the steps of an audit: loss, gradient norm, update, time, with the findings at their steps."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pandas as pd

from nbkit import units
from nbkit.errors import OptionError
from nbkit.findings.finding import wrong
from nbkit.schema import FINDINGS, STEPS
from nbkit.trace.checks import checked_trace
from nbkit.trace.trace import Trace
from nbkit.views.plots.figures import LiveFigure
from nbkit.views.plots.picture.live import live_picture
from nbkit.views.plots.picture.picture import Chart, Picture, Series, log_if_wide
from nbkit.views.plots.thinned import seen_rows
from nbkit.views.summary.names import shown

# Columns of `steps` that are drawn: what the axis says, by what they are divided, a color.
CURVES = {
    "loss": ("loss", 1.0, "#3b82f6"),
    "gradient_norm": ("gradient norm", 1.0, "#d97706"),
    "update_fraction": ("update / weight", 1.0, "#16a34a"),
    "wall_us": ("step time (ms)", 1e3, "#a855f7"),
    "process_bytes": ("process (MiB)", 2.0**20, "#64748b"),
    "reserved_bytes": ("device (MiB)", 2.0**20, "#0d9488"),
    "device_fraction": ("device in use", 1.0, "#be185d"),
}
# Steps with findings that are named, and the share of missing values from which on a curve is points.
MOST, SPARSE = 4, 0.5


def plot_steps(trace: Trace) -> "LiveFigure":
    """Returns live curves over the steps of an audit: loss, gradient norm, update / weight, step time, memory of the
    process and of the device, and how busy the device was.

    Dotted lines are steps with errors or warnings, which the title names. Raises OptionError for a trace without steps.
    """
    return live_picture(steps_picture(trace))


def steps_picture(trace: Trace) -> Picture:
    """Describes plot_steps."""
    steps = STEPS.check(checked_trace(trace).frames.get("steps", STEPS.frame()))
    if not len(steps):
        raise OptionError("This trace has no steps; `python -m nbkit audit SCRIPT --step FUNCTION` records them.")
    steps = steps.astype(dict.fromkeys(CURVES, "float64"))
    found = wrong(trace.frames.get("findings", FINDINGS.frame()))
    found = found[found["step"].isin(steps["step"])]
    rules = {int(rows["step"].iloc[0]): list(dict.fromkeys(rows["rule"])) for _, rows in found.groupby("step")}
    marks = [(float(step), "") for step in rules]
    known = {name: look for name, look in CURVES.items() if np.isfinite(steps[name]).any()}
    charts = [
        Chart(
            [_curve(steps, name, factor, color)],
            "",
            title,
            log_if_wide(steps[name].to_numpy(np.float64), "y"),
            upright=marks,
        )
        for name, (title, factor, color) in known.items()
    ]
    charts[-1] = replace(charts[-1], x_title="step")
    title = f"{units.counted(len(steps), 'step')} of training"
    has_gaps = any(None in chart.series[0].y for chart in charts)
    gaps = ["a gap is NaN, Inf or unknown"] if has_gaps else []
    if any(chart.series[0].kind == "points" for chart in charts):
        gaps.append("between points steps were not looked at, or gave NaN or Inf")
    return Picture(title, charts, "; ".join([*_named(rules), *gaps]), height=1.5)


def _curve(steps: pd.DataFrame, name: str, factor: float, color: str) -> Series:
    """Returns a line with gaps where a value is missing, or points where most are: not each update is measured."""
    finite = steps[name].where(np.isfinite(steps[name]))
    if finite.isna().mean() > SPARSE:
        known = steps[finite.notna()]
        known = known.iloc[seen_rows(known[name].to_numpy(np.float64))]
        return Series("", known["step"].tolist(), (known[name] / factor).tolist(), color, "points")
    few = seen_rows(finite.fillna(0.0).to_numpy(np.float64))
    values = [None if pd.isna(value) else float(value) / factor for value in finite.iloc[few]]
    return Series("", steps["step"].iloc[few].tolist(), values, color)


def _named(rules: "dict[int, list[str]]") -> Iterator[str]:
    for step, names in [*rules.items()][:MOST]:
        yield f"step {step}: {', '.join(map(shown, names))}"
    if len(rules) > MOST:
        yield f"and {units.counted(len(rules) - MOST, 'further step')} with findings"
