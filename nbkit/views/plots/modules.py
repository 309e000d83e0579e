"""Chart of the slowest modules, split by phase."""

from typing import TYPE_CHECKING

import pandas as pd

from nbkit.analysis.time.times import by_module_and_phase
from nbkit.trace.checks import checked_count, checked_trace
from nbkit.trace.trace import Trace
from nbkit.views.plots.figures import (
    MAX_NAME,
    cut_names,
    live_bars,
    static_bars,
    without_markup,
    without_math,
)
from nbkit.views.sections.section import module_names
from nbkit.views.summary.counting import counted_ops
from nbkit.views.summary.facts import PHASE_COLORS, phase_color
from nbkit.views.summary.names import shown

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from nbkit.views.plots.live_figure import LiveFigure

TITLE = "Self time by module and phase"
# Below the long bars, where the short ones leave room.
LEGEND = {"frameon": False, "fontsize": 8, "loc": "lower right", "handlelength": 1}


def plot_modules(trace: Trace, count: int = 12) -> "LiveFigure":
    """Returns a live stacked bar chart of the slowest modules, split by phase."""
    from plotly import graph_objects

    table = _totals(checked_trace(trace), count).rename(index=without_markup)
    bars = [
        graph_objects.Bar(
            x=table[phase],
            y=table.index,
            name=without_markup(shown(phase)),
            orientation="h",
            marker_color=phase_color(phase),
        )
        for phase in map(str, table)
    ]
    figure = live_bars(bars, TITLE, len(table)).with_static_view(lambda: draw_modules(trace, count))
    figure.update_layout(barmode="stack")
    return figure


def draw_modules(trace: Trace, count: int = 12) -> "Figure":
    """Draws plot_modules as a static figure."""
    table = _totals(trace, count).rename(index=without_math)
    figure, axes = static_bars(TITLE, len(table))
    left = pd.Series(0.0, index=table.index)
    for phase in map(str, table):
        axes.barh(table.index, table[phase], left=left, color=phase_color(phase), label=_label(phase))
        left = left + table[phase]
    if len(table):
        axes.legend(**LEGEND)
    return figure


def _label(phase: str) -> str:
    """Shortens the name of a phase for a legend."""
    return without_math(shown(phase, MAX_NAME))


def _totals(trace: Trace, count: int) -> pd.DataFrame:
    """Returns self time in ms: a row per module, slowest last, a column per phase in the order of PHASE_COLORS."""
    checked_count("count", count)
    totals = by_module_and_phase(counted_ops(trace.ops)[0])
    table = totals.assign(name=module_names(totals)).pivot_table(
        index="name", columns="phase", values="self_time_us", aggfunc="sum", fill_value=0.0
    )
    phases = [phase for phase in PHASE_COLORS if phase in table] + [name for name in table if name not in PHASE_COLORS]
    slowest = table.sum(axis=1).sort_values(ascending=False, kind="stable").index[:count][::-1]
    return (table.loc[slowest, phases] / 1e3).set_axis(cut_names(list(slowest)))
