"""Chart of the memory of a step, stacked by what it is for: over the ops of opcost, over the time of a measured one."""

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from nbkit import units
from nbkit.analysis.cost.memory_by_kind import LIFETIMES, memory_by_kind, memory_by_lifetime, phase_spans
from nbkit.analysis.time.memory import memory_peaks
from nbkit.analysis.time.times import computing_ops
from nbkit.schema import OPS
from nbkit.schema.cost import STORAGE_KINDS
from nbkit.trace.trace import Trace
from nbkit.views.plots.figures import MAX_NAME
from nbkit.views.plots.picture.live import live_picture
from nbkit.views.plots.picture.picture import Chart, Picture, Series
from nbkit.views.plots.picture.static import static_picture
from nbkit.views.plots.thinned import BUCKETS, seen_rows
from nbkit.views.summary.names import short_op, shown, shown_module

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from nbkit.views.plots.live_figure import LiveFigure

# What stays is drawn in quiet colors, what the step adds in those of its phases.
HUES = ("#64748b", "#94a3b8", "#cbd5e1", "#16a34a", "#d97706", "#db2777", "#3b82f6", "#a855f7")
COLORS = {
    **dict(zip(STORAGE_KINDS, HUES, strict=True)),
    **dict(zip(LIFETIMES, ("#94a3b8", "#3b82f6", "#d97706", "#16a34a", "#808080", "#a855f7"), strict=True)),
}
# Kinds that the peak is said to be made of.
LARGEST = 4
WIDTH, HEIGHT = 9.0, 3.4
# Each point is written once per kind into the picture of a notebook or report.
STATIC_BUCKETS = 60
MEANING = "temporary: freed in the phase that allocated it; kept: not"


def plot_memory_by_kind(trace: Trace) -> "LiveFigure":
    """Returns a live chart of the memory of the device with the highest peak, stacked by kind."""
    figure = live_picture(memory_by_kind_picture(trace, BUCKETS))
    figure.update_layout(hovermode="x unified", legend_traceorder="reversed")
    return figure.with_static_view(lambda: draw_memory_by_kind(trace))


def draw_memory_by_kind(trace: Trace) -> "Figure":
    """Draws plot_memory_by_kind as a static figure."""
    return static_picture(memory_by_kind_picture(trace, STATIC_BUCKETS))


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
    names = [name for name in all_events if name in COLORS]
    whole = int(events[names].iloc[peak].sum()) if names else int(allocated[peak])
    factor, unit = (2**30, "GiB") if whole >= 2**30 else (2**20, "MiB") if whole >= 2**20 else (2**10, "KiB")
    series = [
        Series(str(name), x[few].tolist(), (events[name].iloc[few] / factor).tolist(), COLORS[str(name)], "area")
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
