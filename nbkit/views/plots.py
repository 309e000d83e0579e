"""Charts of a trace: where the time went by op, and by module and phase; live with plotly, static with matplotlib.

plotly reads simple HTML in names, so they are escaped for it.
"""

from html import escape
from typing import TYPE_CHECKING, Any

import pandas as pd

from nbkit.analysis.slowest import by_module_and_phase, by_op, computing_ops
from nbkit.trace import Trace
from nbkit.views import units
from nbkit.views.facts import PHASE_COLORS
from nbkit.views.names import shown, shown_module

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from plotly.graph_objects import Figure as LiveFigure

MAX_NAME = 48
BAR_COLOR = PHASE_COLORS["forward"]
OP_TITLE, MODULE_TITLE, TIME_AXIS = "Self time by op", "Self time by module and phase", "self time (ms)"


def plot_ops(trace: Trace, count: int = 12) -> "LiveFigure":
    """Live bar chart of the slowest kinds of op."""
    # plotly is slow to import, and not every session plots.
    from plotly import graph_objects

    totals = _op_totals(trace, count)
    totals["name"] = [escape(name, quote=False) for name in totals["name"]]
    bars = graph_objects.Bar(
        x=totals["self_time_us"] / 1e3, y=totals["name"], text=totals["label"], orientation="h", marker_color=BAR_COLOR
    )
    return _live_figure([bars], OP_TITLE, len(totals))


def plot_modules(trace: Trace, count: int = 12) -> "LiveFigure":
    """Live stacked bar chart of the slowest modules, split by phase."""
    from plotly import graph_objects

    table = _module_totals(trace, count).rename(index=lambda name: escape(name, quote=False))
    bars = [
        graph_objects.Bar(x=table[phase], y=table.index, name=phase, orientation="h", marker_color=_color(phase))
        for phase in map(str, table)
    ]
    return _live_figure(bars, MODULE_TITLE, len(table)).update_layout(barmode="stack")


def draw_ops(trace: Trace, count: int = 12) -> "Figure":
    """Static twin of plot_ops."""
    totals = _op_totals(trace, count)
    totals["name"] = [_without_math(name) for name in totals["name"]]
    figure, axes = _static_figure(OP_TITLE, len(totals))
    bars = axes.barh(totals["name"], totals["self_time_us"] / 1e3, color=BAR_COLOR)
    axes.bar_label(bars, labels=totals["label"].tolist(), padding=3, fontsize=8)
    axes.margins(x=0.15)
    return figure


def draw_modules(trace: Trace, count: int = 12) -> "Figure":
    """Static twin of plot_modules."""
    table = _module_totals(trace, count).rename(index=_without_math)
    figure, axes = _static_figure(MODULE_TITLE, len(table))
    left = pd.Series(0.0, index=table.index)
    for phase in map(str, table):
        axes.barh(table.index, table[phase], left=left, color=_color(phase), label=phase)
        left = left + table[phase]
    if len(table):
        axes.legend(
            frameon=False,
            fontsize=8,
            loc="lower right",
            bbox_to_anchor=(1, 1),
            ncols=4,
            columnspacing=1,
            handlelength=1,
        )
    return figure


def _op_totals(trace: Trace, count: int) -> pd.DataFrame:
    """name, self_time_us and label of the slowest kinds of op, slowest last, as bars grow upwards."""
    totals = by_op(computing_ops(trace.ops)).head(count).iloc[::-1]
    labels = [
        f"{units.duration(time_us)} · {units.counted(calls, 'call')}"
        for time_us, calls in zip(totals["self_time_us"], totals["calls"], strict=True)
    ]
    return totals.assign(name=_cut([shown(name) for name in totals["op"]]), label=labels)


def _module_totals(trace: Trace, count: int) -> pd.DataFrame:
    """Self time in ms: a row per module, slowest last, a column per phase in the order of PHASE_COLORS."""
    ops = computing_ops(trace.ops)
    totals = by_module_and_phase(ops)
    has_models = ops["model"].nunique() > 1
    names = [shown_module(*name, with_model=has_models) for name in zip(totals["model"], totals["module"], strict=True)]
    table = totals.assign(name=names).pivot_table(
        index="name", columns="phase", values="self_time_us", aggfunc="sum", fill_value=0.0
    )
    phases = [phase for phase in PHASE_COLORS if phase in table] + [name for name in table if name not in PHASE_COLORS]
    slowest = table.sum(axis=1).sort_values(ascending=False, kind="stable").index[:count][::-1]
    return (table.loc[slowest, phases] / 1e3).set_axis(_cut(list(slowest)))


def _cut(names: list[str]) -> list[str]:
    """Names short enough for an axis; what becomes equal by that is numbered, so that each keeps its bar."""
    cut = [name if len(name) <= MAX_NAME else f"…{name[1 - MAX_NAME :]}" for name in names]
    return [f"{name} ({place})" if cut.count(name) > 1 else name for place, name in enumerate(cut, 1)]


def _without_math(name: str) -> str:
    # matplotlib reads a text between dollar signs as a formula, and refuses a bad one.
    return name.replace("$", r"\$")


def _color(phase: str) -> str:
    return PHASE_COLORS.get(phase, PHASE_COLORS["other"])


def _live_figure(bars: list[Any], title: str, rows: int) -> "LiveFigure":
    from plotly import graph_objects

    height = 130 + 24 * max(rows, 3)
    layout = {
        "title": title,
        "height": height,
        "xaxis_title": TIME_AXIS,
        "margin": {"l": 10, "r": 10, "t": 45, "b": 45},
    }
    figure = graph_objects.Figure(bars)
    return figure.update_layout(**layout).update_yaxes(automargin=True, type="category")


def _static_figure(title: str, rows: int) -> "tuple[Figure, Any]":
    # Figure without pyplot: no global state, no window, nothing to close.
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.5, 1.1 + 0.26 * max(rows, 3)), layout="constrained")
    axes = figure.subplots()
    axes.set_title(title, loc="left", fontsize=10)
    axes.set_xlabel(TIME_AXIS, fontsize=9)
    axes.tick_params(labelsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes
