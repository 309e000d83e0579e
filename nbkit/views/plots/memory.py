"""Chart of the memory that is allocated, over time."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from nbkit import units
from nbkit.schema import MEMORY
from nbkit.trace.checks import checked_trace
from nbkit.trace.trace import Trace
from nbkit.views.plots.figures import MAX_NAME, live_figure, static_figure, without_markup, without_math
from nbkit.views.plots.memory_by_kind import draw_memory_by_kind, is_by_kind, plot_memory_by_kind
from nbkit.views.plots.thinned import seen_rows
from nbkit.views.summary.names import shown

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from nbkit.views.plots.live_figure import LiveFigure

TITLE, X_TITLE, Y_TITLE = "Memory allocated over time", "time (ms)", "allocated (MiB)"
COLORS = ("#3b82f6", "#d97706", "#16a34a", "#a855f7", "#808080")


def plot_memory(trace: Trace) -> "LiveFigure":
    """Returns a live step chart of allocated memory per device, and of reserved memory where that is known.

    It is empty where memory was not recorded. Where it is known what the memory is for, as in a trace of opcost, it is
    stacked by that over the ops of the step, on the device with the highest peak.
    """
    from plotly import graph_objects

    if is_by_kind(checked_trace(trace)):
        return plot_memory_by_kind(trace)
    lines = [
        graph_objects.Scatter(
            x=steps["ms"], y=steps["mib"], name=without_markup(label), mode="lines",
            fill="tozeroy" if is_filled else "none",
            line={"shape": "hv", "color": color, "dash": "solid" if is_filled else "dot"},
        )
        for label, color, steps, is_filled in _lines(trace)
    ]  # fmt: skip
    figure = live_figure(lines, TITLE, 320, X_TITLE).with_static_view(lambda: draw_memory(trace))
    figure.update_layout(yaxis_title=Y_TITLE, showlegend=True).update_yaxes(rangemode="tozero")
    return figure


def draw_memory(trace: Trace) -> "Figure":
    """Draws plot_memory as a static figure."""
    if is_by_kind(trace):
        return draw_memory_by_kind(trace)
    figure, axes = static_figure(TITLE, 2.8, X_TITLE)
    axes.set_ylabel(Y_TITLE, fontsize=9)
    for label, color, steps, is_filled in _lines(trace):
        style = "-" if is_filled else ":"
        axes.step(steps["ms"], steps["mib"], style, where="post", color=color, linewidth=1, label=without_math(label))
        if is_filled:
            axes.fill_between(steps["ms"], steps["mib"], step="post", color=color, alpha=0.2, linewidth=0)
    if axes.lines:
        axes.legend(frameon=False, fontsize=8, loc="lower right", bbox_to_anchor=(1, 1))
    return figure


def _lines(trace: Trace) -> Iterator[tuple[str, str, pd.DataFrame, bool]]:
    """Yields per device its label with the peak, a color, the steps to draw (ms, mib), and whether they are filled.

    What is allocated is filled, what is reserved is a line above it.
    """
    events = trace.frames.get("memory", MEMORY.frame()).dropna(subset=["allocated_bytes"])
    for index, (device, memory) in enumerate(events.groupby("device", sort=True)):
        name, color = shown(str(device), MAX_NAME), COLORS[index % len(COLORS)]
        peak = units.data_size(memory["allocated_bytes"].max())
        yield f"{name}, peak {peak}", color, _steps(memory, "allocated_bytes"), True
        if memory["reserved_bytes"].notna().all():
            most = units.data_size(memory["reserved_bytes"].max())
            yield f"{name}, reserved {most}", color, _steps(memory, "reserved_bytes"), False


def _steps(memory: pd.DataFrame, column: str) -> pd.DataFrame:
    few = memory.iloc[seen_rows(memory[column].to_numpy(np.int64))]
    return pd.DataFrame({"ms": few["time_us"] / 1e3, "mib": few[column].astype("float64") / 2**20})
