"""Chart of the training metrics that a log holds, over steps, with the events of its graph."""

from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from nbkit.errors import OptionError
from nbkit.schema import METRICS
from nbkit.trace.checks import checked_trace
from nbkit.trace.trace import Trace
from nbkit.views.plots.figures import (
    MAX_NAME,
    Figure,
    LiveFigure,
    live_figure,
    on_any_page,
    static_figure,
    without_markup,
    without_math,
)
from nbkit.views.summary.names import shown

TITLE, X_TITLE = "Training metrics", "step"
COLORS = ("#3b82f6", "#d97706", "#16a34a", "#a855f7", "#808080", "#d94fa6")
# Metrics that are drawn, the others are said to be left out.
MOST = 6
FIRST = ("loss", "lr", "throughput", "time")
MOST_STAGES = 4
EVENT_COLOR = "#d64545"
INCHES = 1.5
# Charts beside each other where there are several.
ACROSS = 2


def plot_metrics(trace: Trace) -> "LiveFigure":
    """Returns live line charts, one below the other, of each metric over steps.

    Raises OptionError where the trace has none.
    """
    from plotly import graph_objects
    from plotly.subplots import make_subplots

    metrics = list(_metrics(checked_trace(trace)))
    if not metrics:
        raise OptionError("This trace has no metrics; traces of OneFlow logs have, and an audit has the frame `steps`.")
    grid = make_subplots(rows=max(len(metrics), 1), cols=1, shared_xaxes=True, vertical_spacing=0.04)
    figure = live_figure([], _title(trace), 120 + 130 * max(len(metrics), 1), "").with_static_view(
        lambda: draw_metrics(trace)
    )
    on_any_page(figure.update_layout(grid.layout).update_layout(showlegend=False))
    for row, (name, color, values) in enumerate(metrics, 1):
        axis = "" if row == 1 else str(row)
        line = graph_objects.Scatter(
            x=values["step"], y=values["value"], name=without_markup(name), mode="lines+markers", line={"color": color},
            marker={"size": 4}, xaxis=f"x{axis}", yaxis=f"y{axis}",
        )  # fmt: skip
        figure.add_trace(line)
        figure.layout[f"yaxis{axis}"].title.text = without_markup(name)
    for step, text in _events(trace):
        figure.add_vline(x=step, line={"color": EVENT_COLOR, "dash": "dot"}, annotation_text=without_markup(text))
    figure.layout[f"xaxis{len(metrics) if len(metrics) > 1 else ''}"].title.text = X_TITLE
    return figure


def draw_metrics(trace: Trace) -> "Figure":
    """Returns draws plot_metrics as a static figure."""
    metrics = list(_metrics(trace))
    across = min(ACROSS, max(len(metrics), 1))
    down = -(-max(len(metrics), 1) // across)
    figure, _ = static_figure(_title(trace), 0.8 + INCHES * down, X_TITLE)
    figure.clear()
    told = [without_math(text) for _, text in _events(trace)]
    figure.suptitle(" · ".join([_title(trace), *told]), x=0.01, ha="left", fontsize=8)
    rows = figure.subplots(down, across, sharex=True, squeeze=False).ravel()
    for axes in rows[-across:]:
        axes.set_xlabel(X_TITLE, fontsize=9)
    # Names stand above their charts: beside them, upright, a long one would run into the next.
    for axes, (name, color, values) in zip(rows, metrics, strict=False):
        axes.plot(values["step"], values["value"], color=color, linewidth=1.2, marker=".", markersize=4)
        axes.set_title(without_math(name), loc="left", fontsize=8)
    for axes in rows[len(metrics) :]:
        axes.set_axis_off()
    for axes in rows[: max(len(metrics), 1)]:
        axes.tick_params(labelsize=8)
        axes.spines[["top", "right"]].set_visible(False)
        for step, _ in _events(trace):
            axes.axvline(step, color=EVENT_COLOR, linestyle=":", linewidth=1)
    return figure


def _metrics(trace: Trace) -> Iterator[tuple[str, str, pd.DataFrame]]:
    """Yields name, color and rows of the metrics that are drawn, those that are asked for first in front."""
    metrics = METRICS.check(trace.frames.get("metrics", METRICS.frame()))
    for index, name in enumerate(_names(metrics)[:MOST]):
        yield shown(name, MAX_NAME), COLORS[index % len(COLORS)], metrics[metrics["name"] == name]


def _names(metrics: pd.DataFrame) -> list[str]:
    names: list[str] = metrics["name"].unique().tolist()
    return sorted(names, key=lambda name: next((at for at, word in enumerate(FIRST) if word in name), len(FIRST)))


def _title(trace: Trace) -> str:
    count = trace.frames.get("metrics", METRICS.frame())["name"].nunique()
    return f"{TITLE}, {MOST} of {count}" if count > MOST else TITLE


def _events(trace: Trace) -> list[tuple[int, str]]:
    """Returns steps and what happened to the graph there: it was built before the first one, and may crash."""
    metrics = METRICS.check(trace.frames.get("metrics", METRICS.frame()))
    if not len(metrics):
        return []
    crash = [(int(metrics["step"].max()), f"crash: {shown(_error(trace.meta), 40)}")] if trace.meta.get("error") else []
    return [*([(0, ", ".join(stages))] if (stages := _stages(trace.meta)) else []), *crash]


def _error(meta: Mapping[str, Any]) -> str:
    error = meta["error"]
    return str(error.get("type", "error") if isinstance(error, Mapping) else error)


def _stages(meta: Mapping[str, Any]) -> list[str]:
    """Returns stages of building the graph with their seconds, as its reader tells them."""
    values = [known.get("stages") for known in meta.values() if isinstance(known, Mapping)]
    stages = [stage for value in values if isinstance(value, list) for stage in value]
    return [f"{shown(str(stage['stage']), 40)} {float(stage['seconds']):.3g} s" for stage in stages][:MOST_STAGES]
