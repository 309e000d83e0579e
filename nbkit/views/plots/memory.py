"""Charts of the memory that is allocated: over time by device, or stacked by what it is for.

What it is for is known over the ops of opcost, and over the time of a measured step.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from nbkit import units
from nbkit.analysis.cost.memory_by_kind import LIFETIMES, memory_by_kind, memory_by_lifetime, phase_spans
from nbkit.analysis.time.memory import memory_peaks
from nbkit.analysis.time.times import computing_ops
from nbkit.schema import MEMORY, OPS
from nbkit.schema.cost import STORAGE_KINDS
from nbkit.trace.checks import checked_trace
from nbkit.trace.trace import Trace
from nbkit.views.plots.figures import (
    MAX_NAME,
    Figure,
    LiveFigure,
    live_figure,
    static_figure,
    without_markup,
    without_math,
)
from nbkit.views.plots.picture.live import live_picture
from nbkit.views.plots.picture.picture import Chart, Picture, Series
from nbkit.views.plots.picture.static import static_picture
from nbkit.views.plots.thinned import BUCKETS, seen_rows
from nbkit.views.summary.names import short_op, shown, shown_module

TITLE, X_TITLE, Y_TITLE = "Memory allocated over time", "time (ms)", "allocated (MiB)"
COLORS = ("#3b82f6", "#d97706", "#16a34a", "#a855f7", "#808080")
# What stays is drawn in quiet colors, what the step adds in those of its phases.
HUES = ("#64748b", "#94a3b8", "#cbd5e1", "#16a34a", "#d97706", "#db2777", "#3b82f6", "#a855f7")
KIND_COLORS = {
    **dict(zip(STORAGE_KINDS, HUES, strict=True)),
    **dict(zip(LIFETIMES, ("#94a3b8", "#3b82f6", "#d97706", "#16a34a", "#808080", "#a855f7"), strict=True)),
}
# Kinds that the peak is said to be made of.
LARGEST = 4
WIDTH, HEIGHT = 9.0, 3.4
# Each point is written once per kind into the picture of a notebook or report.
STATIC_BUCKETS = 60
MEANING = "temporary: freed in the phase that allocated it; kept: not"


def plot_memory(trace: Trace) -> "LiveFigure":
    """Returns a live step chart of allocated memory per device, and of reserved memory where that is known.

    It is empty where memory was not recorded. Where it is known what the memory is for, as in a trace of opcost, it is
    stacked by that over the ops of the step, on the device with the highest peak.
    """
    from plotly import graph_objects

    if is_by_kind(checked_trace(trace)):
        figure = live_picture(memory_by_kind_picture(trace, BUCKETS))
        figure.update_layout(hovermode="x unified", legend_traceorder="reversed")
        return figure.with_static_view(lambda: draw_memory(trace))
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
        return static_picture(memory_by_kind_picture(trace, STATIC_BUCKETS))
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


def is_by_kind(trace: Trace) -> bool:
    """Tells whether it is known what the memory is for: by opcost, or by who allocated it and where it was freed."""
    memory, ops = trace.frames.get("memory"), trace.frames.get("ops", ())
    if "storages" in trace.frames:
        return True
    if memory is None or not len(ops):
        return False
    made = memory[memory["delta_bytes"] > 0]
    return bool(len(made) and made[["allocation_id", "allocated_bytes"]].notna().all(axis=None))


def memory_by_kind_picture(trace: Trace, buckets: int) -> Picture:
    """Describes the chart, with four places at most of each of so many pieces of the step."""
    ops, memory = OPS.check(trace.frames.get("ops", OPS.frame())), trace.memory
    is_measured = "storages" not in trace.frames
    x_title = "time (ms)" if is_measured else "op, in call order"
    peaks = memory_peaks(memory).sort_values("peak_bytes", ascending=False, kind="stable")
    if not len(peaks):
        return Picture("Memory by kind", [Chart([], x_title, "MiB")], "", HEIGHT, WIDTH)
    device = str(peaks["device"].iloc[0])
    all_events = memory_by_lifetime(memory, ops) if is_measured else memory_by_kind(memory, trace.storages)
    events = all_events[all_events["device"] == device]
    at = memory["time_us"] / 1e3 if is_measured else memory["op_id"].astype("float64").fillna(0.0)
    x, allocated = at[events.index].to_numpy(np.float64), events["allocated_bytes"].to_numpy("int64")
    places = np.maximum.accumulate(x)
    few, peak = seen_rows(allocated, buckets, places), int(allocated.argmax())
    names = [name for name in all_events if name in KIND_COLORS]
    whole = int(events[names].iloc[peak].sum()) if names else int(allocated[peak])
    factor, unit = (2**30, "GiB") if whole >= 2**30 else (2**20, "MiB") if whole >= 2**20 else (2**10, "KiB")
    series = [
        Series(str(name), x[few].tolist(), (events[name].iloc[few] / factor).tolist(), KIND_COLORS[str(name)], "area")
        for name in names
    ]
    if series and is_measured:
        last = series[-1]
        who = _who(memory.loc[events.index[few]], ops)
        texts = [f"{last.name}: {held:.3g}; {by}" for held, by in zip(last.y, who, strict=True)]
        series[-1] = Series(last.name, last.x, last.y, last.color, "area", texts)
    above = f" ({units.data_size(float(allocated[peak]))} more than at the start)" if whole > allocated[peak] else ""
    most = f"peak {units.data_size(whole)}{above}, {_made_of(events.iloc[peak], names)}"
    marks = [(float(x[peak]), "peak")] if trace.complete else []
    chart = Chart(
        series, x_title, f"allocated ({unit})", upright=marks, from_zero=True,
        bands=_bands(ops, is_measured),
    )  # fmt: skip
    title = f"Memory on {shown(device, MAX_NAME)}{_more(len(peaks))}: {most if marks else 'until the step stopped'}"
    return Picture(title, [chart], MEANING if is_measured else "", HEIGHT, WIDTH)


def _more(devices: int) -> str:
    return f" (the highest of {units.counted(devices, 'device')})" if devices > 1 else ""


def _bands(ops: pd.DataFrame, is_measured: bool) -> list[tuple[str, float, float]]:
    """Returns the phases with their ends: of a measured step in ms, each to where the next one begins."""
    if not is_measured:
        return list(phase_spans(ops).itertuples(index=False, name=None))
    ops = computing_ops(ops).sort_values("start_us", ignore_index=True)
    ends = (ops["start_us"] + ops["total_time_us"]) / 1e3
    return [
        (phase, float(ops["start_us"].iloc[first] / 1e3), float(ends.iloc[first : last + 1].max()))
        for phase, first, last in phase_spans(ops).itertuples(index=False)
    ]


def _who(memory: pd.DataFrame, ops: pd.DataFrame) -> list[str]:
    """Says of each event how much was allocated or freed, and by which op, module and line."""
    rows = ops[["op", "module", "source"]].reindex(memory["op_id"].astype("float64"))
    return [
        f"{'+' if delta > 0 else '-'}{units.data_size(abs(delta))} by "
        + (f"{short_op(op)} in {shown_module(None, module)} {shown(line) if isinstance(line, str) else ''}"
           if isinstance(op, str) else "no op")
        for delta, (op, module, line) in zip(memory["delta_bytes"], rows.itertuples(index=False), strict=True)
    ]  # fmt: skip


def _made_of(peak: "pd.Series[Any]", names: list[str]) -> str:
    """Says what makes up the peak, largest first."""
    largest = sorted(((int(peak[name]), name) for name in names if peak[name]), reverse=True)[:LARGEST]
    return ", ".join(f"{name} {units.data_size(size)}" for size, name in largest)
