"""Chart of the slowest kinds of op."""

from typing import TYPE_CHECKING

import pandas as pd

from nbkit import units
from nbkit.analysis.time.times import computing_ops, self_totals
from nbkit.trace.checks import checked_count, checked_trace
from nbkit.trace.trace import Trace
from nbkit.views.plots.figures import cut_names, live_bars, static_bars, without_markup, without_math
from nbkit.views.summary.facts import PHASE_COLORS
from nbkit.views.summary.names import shown

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from nbkit.views.plots.live_figure import LiveFigure

TITLE = "Self time by op"
COLOR = PHASE_COLORS["forward"]


def plot_ops(trace: Trace, count: int = 12) -> "LiveFigure":
    """Returns a live bar chart of the slowest kinds of op."""
    from plotly import graph_objects

    totals = _totals(checked_trace(trace), count)
    names = [without_markup(name) for name in totals["name"]]
    time_ms = totals["self_time_us"] / 1e3
    bars = graph_objects.Bar(x=time_ms, y=names, text=totals["label"], orientation="h", marker_color=COLOR)
    return live_bars([bars], TITLE, len(totals)).with_static_view(lambda: draw_ops(trace, count))


def draw_ops(trace: Trace, count: int = 12) -> "Figure":
    """Draws plot_ops as a static figure."""
    totals = _totals(trace, count)
    figure, axes = static_bars(TITLE, len(totals))
    bars = axes.barh([without_math(name) for name in totals["name"]], totals["self_time_us"] / 1e3, color=COLOR)
    axes.bar_label(bars, labels=totals["label"].tolist(), padding=3, fontsize=8)
    axes.margins(x=0.15)
    return figure


def _totals(trace: Trace, count: int) -> pd.DataFrame:
    """Returns name, self_time_us and label of the slowest kinds of op, slowest last: bars grow upwards."""
    checked_count("count", count)
    totals = self_totals(computing_ops(trace.ops), ["op"]).head(count).iloc[::-1]
    labels = [
        f"{units.duration(time_us)} · {units.counted(calls, 'call')}"
        for time_us, calls in zip(totals["self_time_us"], totals["calls"], strict=True)
    ]
    return totals.assign(name=cut_names([shown(name) for name in totals["op"]]), label=labels)
