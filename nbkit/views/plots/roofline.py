"""Chart of a step's ops below the roofs of its device: FLOP/s over arithmetic intensity, predicted or measured."""

from typing import Any

import numpy as np
import pandas as pd

from nbkit import units
from nbkit.analysis.cost.attained import Roofs, attained, measured, roofs, roofs_measured
from nbkit.errors import OptionError
from nbkit.schema import OPS
from nbkit.trace.checks import checked_trace
from nbkit.trace.trace import Trace
from nbkit.views.plots.figures import INK, Figure, LiveFigure
from nbkit.views.plots.picture.live import live_picture
from nbkit.views.plots.picture.picture import Chart, Picture, Series
from nbkit.views.plots.picture.static import static_picture
from nbkit.views.summary.names import short_op, shown

TITLE, MEASURED_TITLE = "Roofline of the predicted step", "Roofline of the measured step"
X_TITLE, Y_TITLE = "arithmetic intensity (FLOPs per byte)", "FLOP/s"
BOUND_COLORS = {"compute": "#3b82f6", "memory": "#d97706", "launch": "#a855f7", "communication": "#16a34a"}
OTHER_COLOR = "#808080"
NO_SHAPES = (
    "This trace has no ops of known FLOPs with their times; optime with shapes records measured ones, opcost with a "
    "device predicts them."
)
NO_ROOFS = "No roofs: nbkit.calibrate() was not run on this machine before the recording"
# Kinds of call that are drawn, those that take most time; of these so many are named in the static figure.
MOST, NAMED = 300, 5
# Of all time: what takes less is not drawn. And how many orders of magnitude names stand apart.
SMALLEST, APART = 1e-4, 0.5
ALL_OF_IT = 0.99
SMALLEST_MARK, LARGEST_MARK = 6.0, 30.0


def plot_roofline(trace: Trace) -> "LiveFigure":
    """Returns a live scatter of ops, FLOP/s over intensity, both logarithmic: of opcost with a device, or of optime.

    A mark is an op with one size of call, as large as its share of the time. Predicted ones have the color of what
    bounds them, and the roofs that the times imply: bandwidth, and the highest FLOP/s of each dtype. Measured ones, of
    optime with shapes, have the roofs that nbkit.calibrate() had measured on the device
    before. Raises OptionError if the trace has neither predicted times nor measured ops of known FLOPs.
    """
    return live_picture(roofline_picture(trace))


def draw_roofline(trace: Trace) -> "Figure":
    """Draws plot_roofline as a static figure; the ops that take most time are named."""
    return static_picture(roofline_picture(trace))


def roofline_picture(trace: Trace) -> Picture:
    """Describes plot_roofline."""
    if "costs" in checked_trace(trace).frames:
        points, known, whole_us = attained(trace), roofs(trace), float(trace.costs["time_us"].sum())
        device, caption, title = trace.meta.get("cost_device"), "", TITLE
    else:
        points, known, title = measured(trace), roofs_measured(trace), MEASURED_TITLE
        times = trace.frames.get("ops", OPS.frame())[["self_device_time_us", "self_time_us"]].sum()
        device, whole_us = trace.meta.get("measured_device"), float(times.iloc[0] or times.iloc[1])
        caption = "" if device else NO_ROOFS
        if not len(points):
            raise OptionError(NO_SHAPES)
    points = points.head(MOST)
    # What takes next to no time would only widen the axes.
    points = points[points["time_us"] > SMALLEST * float(points["time_us"].sum())]
    title = f"{title} on {shown(str(device['name']))}" if device else title
    share = float(points["time_us"].sum()) / (whole_us or 1.0)
    title = title if share > ALL_OF_IT else f"{title}: ops that compute, {units.share(share)} of its time"
    lines, notes = _roof_lines(points, known)
    chart = Chart([*lines, *_marks(points)], X_TITLE, Y_TITLE, "xy", notes=[*notes, *_named(points)])
    return Picture(title, [chart], caption, height=3.4)


def _marks(points: pd.DataFrame) -> list[Series]:
    """Returns the marks by what bounds them: their areas are as the times."""
    share = points["time_us"].to_numpy(np.float64) / (float(points["time_us"].max()) if len(points) else 1.0)
    points = points.assign(size=np.maximum(np.sqrt(share) * LARGEST_MARK, SMALLEST_MARK))
    return [
        Series(
            f"{bound} bound" if bound else "measured", of["intensity"].tolist(), of["flops_per_s"].tolist(),
            BOUND_COLORS.get(bound, OTHER_COLOR if bound else BOUND_COLORS["compute"]), "points",
            [*map(_about, of.to_dict("records"))], of["size"].tolist(),
        )
        for bound, of in points.groupby(points["bound"].fillna(""), sort=True)
    ]  # fmt: skip


def _named(points: pd.DataFrame) -> list[tuple[str, float, float]]:
    """Returns name and place of the ops with most time, without those that would be written over another one."""
    named: list[tuple[str, float, float]] = []
    for row in points.drop_duplicates("op").to_dict("records"):
        place = (short_op(str(row["op"])), float(row["intensity"]), float(row["flops_per_s"]))
        if len(named) < NAMED and all(abs(np.log10(place[2] / other[2])) > APART for other in named):
            named.append(place)
    return named


def _about(row: dict[Any, Any]) -> str:
    calls, time = units.counted(int(row["calls"]), "call"), units.duration(float(row["time_us"]))
    return f"{short_op(str(row['op']))}, {row['dtype']}: {calls}, {time}, {units.flops(float(row['flops_per_s']))}/s"


def _roof_lines(points: pd.DataFrame, known: Roofs) -> tuple[list[Series], list[tuple[str, float, float]]]:
    """Returns each roof over the intensities that are drawn, and a little beyond, and where its name stands."""
    if not len(points):
        return [], []
    low, high = float(points["intensity"].min()) / 2, float(points["intensity"].max()) * 2
    lines, notes = [], []
    highest = max(known.flops_per_s.values(), default=None)
    if known.bytes_per_s is not None:
        ridge = high if highest is None else highest / known.bytes_per_s
        # Both roofs are shown, with an order of magnitude of each.
        low, high = min(low, ridge / 10), max(high, ridge * 2)
        name, ends = f"{units.data_size(known.bytes_per_s)}/s", [low * known.bytes_per_s, ridge * known.bytes_per_s]
        lines.append(Series(name, [low, ridge], ends, INK, is_dotted=True))
        notes.append((name, (low * ridge) ** 0.5, (ends[0] * ends[1]) ** 0.5))
    for dtype, rate in known.flops_per_s.items():
        start = low if known.bytes_per_s is None else max(rate / known.bytes_per_s, low)
        name = f"{dtype}: {units.flops(rate)}/s"
        lines.append(Series(name, [start, high], [rate, rate], INK, "steps"))
        notes.append((name, start, rate))
    return lines, notes
