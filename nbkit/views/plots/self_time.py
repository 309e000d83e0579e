"""Charts of self time as bars: of the slowest kinds of op, and of the slowest modules split by phase."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pandas as pd

from nbkit import units
from nbkit.analysis.time.times import by_module_and_phase, computing_ops, self_totals
from nbkit.errors import OptionError
from nbkit.trace.checks import checked_count, checked_trace
from nbkit.trace.trace import Trace
from nbkit.views.plots.figures import (
    MAX_NAME,
    Figure,
    LiveFigure,
    cut_names,
    live_figure,
    static_figure,
    without_markup,
    without_math,
)
from nbkit.views.sections.section import module_names
from nbkit.views.summary.counting import counted_ops
from nbkit.views.summary.facts import PHASE_COLORS, phase_color
from nbkit.views.summary.names import shown

TIME_AXIS = "self time (ms)"
# Below the long bars, where the short ones leave room.
LEGEND = {"frameon": False, "fontsize": 8, "loc": "lower right", "handlelength": 1}


@dataclass(frozen=True)
class Bars:
    """Describes stacked bars: a row of `table` for each, slowest last, as bars grow upwards, a column for each part.

    `table` holds what `axis` says. Parts are phases, or one that is none, whose bars have `labels` at their ends;
    `colors` has those of others.
    """

    title: str
    table: pd.DataFrame
    labels: Sequence[str] | None = None
    axis: str = TIME_AXIS
    colors: Mapping[str, str] = field(default_factory=lambda: PHASE_COLORS)

    def color(self, part: str) -> str:
        """Returns the color of a part; that of phases that we do not know for one without."""
        return self.colors.get(part, phase_color(part))


def plot_ops(trace: Trace, count: int = 12) -> "LiveFigure":
    """Returns a live bar chart of the slowest kinds of op."""
    return live_bars(_ops(checked_trace(trace), count))


def draw_ops(trace: Trace, count: int = 12) -> "Figure":
    """Draws plot_ops as a static figure."""
    return static_bars(_ops(trace, count))


def plot_modules(trace: Trace, count: int = 12) -> "LiveFigure":
    """Returns a live stacked bar chart of the slowest modules, split by phase."""
    return live_bars(_modules(checked_trace(trace), count))


def draw_modules(trace: Trace, count: int = 12) -> "Figure":
    """Draws plot_modules as a static figure."""
    return static_bars(_modules(trace, count))


def _ops(trace: Trace, count: int) -> Bars:
    checked_count("count", count)
    if "ops" not in trace.frames and trace.frames:  # none are there while it is recorded, as it says itself
        raise OptionError(
            f"This trace of {trace.meta.get('verb')} has no times of ops; nbkit.plot_op_counts(trace) draws how often "
            "each op is there."
        )
    totals = self_totals(computing_ops(trace.ops), ["op"]).head(count).iloc[::-1]
    labels = [
        f"{units.duration(time_us)} · {units.counted(calls, 'call')}"
        for time_us, calls in zip(totals["self_time_us"], totals["calls"], strict=True)
    ]
    names = cut_names([shown(name) for name in totals["op"]])
    # All kinds of op have the color of a phase.
    table = pd.DataFrame({"forward": totals["self_time_us"] / 1e3}).set_axis(names)
    return Bars("Self time by op", table, labels)


def _modules(trace: Trace, count: int) -> Bars:
    """Describes the modules, with their phases in the order of PHASE_COLORS."""
    checked_count("count", count)
    totals = by_module_and_phase(counted_ops(trace.ops)[0])
    table = totals.assign(name=module_names(totals)).pivot_table(
        index="name", columns="phase", values="self_time_us", aggfunc="sum", fill_value=0.0
    )
    phases = [phase for phase in PHASE_COLORS if phase in table] + [name for name in table if name not in PHASE_COLORS]
    slowest = table.sum(axis=1).sort_values(ascending=False, kind="stable").index[:count][::-1]
    table = (table.loc[slowest, phases] / 1e3).set_axis(cut_names(list(slowest)))
    return Bars("Self time by module and phase", table)


def live_bars(bars: Bars) -> "LiveFigure":
    """Returns bars as a live figure."""
    from plotly import graph_objects

    names, labels = [*map(without_markup, bars.table.index)], bars.labels
    parts = [
        graph_objects.Bar(
            x=bars.table[part], y=names, name=without_markup(shown(part)) if labels is None else None, text=labels,
            orientation="h", marker_color=bars.color(part),
        )
        for part in map(str, bars.table)
    ]  # fmt: skip
    figure = live_figure(parts, bars.title, 130 + 24 * max(len(names), 3), bars.axis)
    figure.update_yaxes(automargin=True, type="category")
    figure.update_layout(barmode="stack" if labels is None else None)
    return figure.with_static_view(lambda: static_bars(bars))


def static_bars(bars: Bars) -> "Figure":
    """Draws bars as a static figure."""
    names, labels = [*map(without_math, bars.table.index)], bars.labels
    figure, axes = static_figure(bars.title, 1.1 + 0.26 * max(len(names), 3), bars.axis)
    left = pd.Series(0.0, index=bars.table.index)
    for part in map(str, bars.table):
        name = without_math(shown(part, MAX_NAME)) if labels is None else None
        drawn = axes.barh(names, bars.table[part], left=left, color=bars.color(part), label=name)
        left = left + bars.table[part]
        if labels is not None:
            axes.bar_label(drawn, labels=labels, padding=3, fontsize=8)
            axes.margins(x=0.15)
    if labels is None and len(names):
        axes.legend(**LEGEND)
    return figure
