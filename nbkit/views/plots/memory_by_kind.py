"""Chart of the memory that a step would take, stacked by what it is for, over its ops."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from nbkit import units
from nbkit.analysis.cost.memory_by_kind import memory_by_kind, phase_spans
from nbkit.analysis.time.memory import memory_peaks
from nbkit.schema import OPS
from nbkit.schema.cost import STORAGE_KINDS
from nbkit.trace.trace import Trace
from nbkit.views.plots.figures import (
    MAX_NAME,
    live_figure,
    phase_color,
    static_figure,
    translucent,
    without_markup,
    without_math,
)
from nbkit.views.plots.thinned import BUCKETS, seen_rows
from nbkit.views.summary.names import shown

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from nbkit.views.plots.live_figure import LiveFigure

X_TITLE = "op, in call order"
# What stays is drawn in quiet colors, what the step adds in those of its phases.
HUES = ("#64748b", "#94a3b8", "#cbd5e1", "#16a34a", "#d97706", "#db2777", "#3b82f6", "#a855f7")
COLORS = dict(zip(STORAGE_KINDS, HUES, strict=True))
PEAK_COLOR = "#d64545"
# Kinds that the peak is said to be made of, and the share of the width that the name of a phase needs.
LARGEST, NAMED = 4, 0.08
WIDTH, HEIGHT = 9.0, 3.4
# Each point is written once per kind into the picture of a notebook or report.
STATIC_BUCKETS = 60


@dataclass(frozen=True)
class _Stack:
    """Holds what is drawn: the place of each point, the MiB of each kind there, the peak and the phases."""

    title: str
    op_ids: "pd.Series[float]"
    kinds: pd.DataFrame
    peak_op_id: float
    peak: float
    phases: pd.DataFrame
    unit: str
    is_whole: bool = True  # the step did not stop before its end


def plot_memory_by_kind(trace: Trace) -> "LiveFigure":
    """Returns a live chart of the memory of the device with the highest peak, stacked by kind."""
    from plotly import graph_objects

    stack = _stack(trace)
    layers = [
        graph_objects.Scatter(
            x=stack.op_ids, y=values, name=str(kind), mode="lines", stackgroup="memory",
            line={"shape": "hv", "color": COLORS[str(kind)], "width": 0.5},
            fillcolor=translucent(COLORS[str(kind)], 0.7),
        )
        for kind, values in stack.kinds.items()
    ]  # fmt: skip
    title = without_markup(stack.title).replace(": ", "<br>", 1)
    figure = live_figure(layers, title, 420, X_TITLE)
    figure.update_layout(yaxis_title=stack.unit, hovermode="x unified", legend_traceorder="reversed", margin_t=90)
    for phase, first, last in stack.phases.itertuples(index=False):
        figure.add_shape(
            type="rect", xref="x", yref="paper", x0=first, x1=last, y0=1.0, y1=1.03, line_width=0,
            fillcolor=phase_color(phase),
        )  # fmt: skip
        if _is_named(stack, first, last):
            figure.add_annotation(
                x=(first + last) / 2, y=1.03, yref="paper", yanchor="bottom", showarrow=False,
                text=without_markup(shown(phase, MAX_NAME)), font_size=11,
            )  # fmt: skip
    if stack.is_whole:
        figure.add_vline(x=stack.peak_op_id, line={"color": PEAK_COLOR, "dash": "dot", "width": 1.5})
        figure.add_annotation(
            x=stack.peak_op_id, y=stack.peak, text="peak", xanchor="right", font_color=PEAK_COLOR, ax=-18, ay=-14
        )
    figure.update_yaxes(rangemode="tozero")
    return figure.with_static_view(lambda: draw_memory_by_kind(trace))


def draw_memory_by_kind(trace: Trace) -> "Figure":
    """Draws plot_memory_by_kind as a static figure."""
    stack = _stack(trace, STATIC_BUCKETS)
    figure, axes = static_figure(without_math(stack.title), HEIGHT, X_TITLE, WIDTH)
    axes.set_ylabel(stack.unit, fontsize=9)
    if not len(stack.kinds):
        return figure
    names = [str(kind) for kind in stack.kinds]
    axes.stackplot(
        stack.op_ids, *(stack.kinds[name] for name in names), labels=names, colors=[COLORS[name] for name in names],
        step="post", alpha=0.75, linewidth=0,
    )  # fmt: skip
    if stack.is_whole:
        axes.axvline(stack.peak_op_id, color=PEAK_COLOR, linestyle=":", linewidth=1.2)
    axes.set(xlim=(0, max(float(stack.op_ids.max()), 1.0)), ylim=(0, stack.peak * 1.12 or 1.0))
    for phase, first, last in stack.phases.itertuples(index=False):
        axes.axvspan(first, last, 0.965, 1.0, color=phase_color(phase), linewidth=0, alpha=0.8)
        if _is_named(stack, first, last):
            label = without_math(shown(phase, MAX_NAME))
            axes.text((first + last) / 2, stack.peak * 1.06, label, fontsize=7, ha="center", va="center")
    handles, labels = axes.get_legend_handles_labels()
    axes.legend(
        handles[::-1], labels[::-1], frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0),
        handlelength=1,
    )  # fmt: skip
    return figure


def _is_named(stack: _Stack, first: float, last: float) -> bool:
    return bool(last - first >= NAMED * max(float(stack.op_ids.max()), 1.0))


def _stack(trace: Trace, buckets: int = BUCKETS) -> _Stack:
    ops = OPS.check(trace.frames.get("ops", OPS.frame()))
    memory = trace.memory
    peaks = memory_peaks(memory).sort_values("peak_bytes", ascending=False, kind="stable")
    if not len(peaks):
        none = pd.Series(dtype="float64")
        return _Stack("Memory by kind", none, pd.DataFrame(), 0.0, 0.0, phase_spans(ops), "MiB")
    device, peak_bytes = str(peaks["device"].iloc[0]), float(peaks["peak_bytes"].iloc[0])
    events = memory_by_kind(memory, trace.storages)
    events = events[events["device"] == device].reset_index(drop=True)
    places = np.maximum.accumulate(events["op_id"].fillna(0).to_numpy("int64"))
    few = events.iloc[seen_rows(events["allocated_bytes"].to_numpy("int64"), buckets, places)]
    peak = events.iloc[int(events["allocated_bytes"].to_numpy("int64").argmax())]
    factor, unit = (2**30, "GiB") if peak_bytes >= 2**30 else (2**20, "MiB") if peak_bytes >= 2**20 else (2**10, "KiB")
    kinds = few[[name for name in STORAGE_KINDS if name in few]]
    more = f" (the highest of {units.counted(len(peaks), 'device')})" if len(peaks) > 1 else ""
    most = f"peak {units.data_size(peak_bytes)}, {_made_of(peak)}" if trace.complete else "until the step stopped"
    title = f"Memory on {shown(device, MAX_NAME)}{more}: {most}"
    return _Stack(
        title,
        few["op_id"].astype("float64").fillna(0.0),
        kinds / factor,
        0.0 if pd.isna(peak["op_id"]) else float(peak["op_id"]),
        peak_bytes / factor,
        phase_spans(ops),
        f"allocated ({unit})",
        trace.complete,
    )


def _made_of(peak: "pd.Series[Any]") -> str:
    """Says what makes up the peak, largest first."""
    sizes = {name: int(peak[name]) for name in STORAGE_KINDS if name in peak}
    largest = sorted((size, name) for name, size in sizes.items() if size)[::-1][:LARGEST]
    return ", ".join(f"{name} {units.data_size(size)}" for size, name in largest)
