"""Chart of a predicted step's ops below the roofs of its device: FLOP/s over arithmetic intensity."""

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from nbkit import units
from nbkit.analysis.cost.attained import Roofs, attained, roofs
from nbkit.trace.trace import Trace
from nbkit.views.plots.figures import INK, live_figure, static_figure, translucent, without_markup, without_math
from nbkit.views.summary.names import short_op, shown

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from nbkit.views.plots.live_figure import LiveFigure

TITLE = "Roofline of the predicted step"
X_TITLE, Y_TITLE = "arithmetic intensity (FLOPs per byte)", "FLOP/s"
BOUND_COLORS = {"compute": "#3b82f6", "memory": "#d97706", "launch": "#a855f7", "communication": "#16a34a"}
OTHER_COLOR = "#808080"
# Kinds of call that are drawn, those that take most time; of these so many are named in the static figure.
MOST, NAMED = 300, 5
ALL_OF_IT = 0.99
SMALLEST_MARK, LARGEST_MARK = 6.0, 30.0


def plot_roofline(trace: Trace) -> "LiveFigure":
    """Returns a live scatter of the ops of an opcost trace with a device: FLOP/s over intensity, both logarithmic.

    A mark is an op with one size of call, as large as its share of the predicted time, in the color of what bounds it.
    The lines are the roofs that the times imply: bandwidth, and the highest FLOP/s of each dtype. Raises OptionError if
    the trace has no predicted times.
    """
    from plotly import graph_objects

    points, known = attained(trace).head(MOST), roofs(trace)
    marks = [
        graph_objects.Scatter(
            x=of["intensity"], y=of["flops_per_s"], name=f"{bound} bound", mode="markers",
            text=[without_markup(_about(row)) for row in of.to_dict("records")], hovertemplate="%{text}<extra></extra>",
            marker={"size": _sizes(of, points), "color": translucent(_color(bound), 0.6), "line_width": 0},
        )
        for bound, of in points.assign(bound=points["bound"].fillna("nothing")).groupby("bound", sort=True)
    ]  # fmt: skip
    lines = [
        graph_objects.Scatter(x=x, y=y, name=without_markup(name), mode="lines", line={"color": INK, "dash": dash})
        for name, x, y, dash in _roof_lines(points, known)
    ]
    figure = live_figure([*lines, *marks], without_markup(_title(trace)), 440, X_TITLE).with_static_view(
        lambda: draw_roofline(trace)
    )
    figure.update_xaxes(type="log").update_yaxes(type="log", title=Y_TITLE)
    return figure


def draw_roofline(trace: Trace) -> "Figure":
    """Draws plot_roofline as a static figure; the ops that take most time are named."""
    points, known = attained(trace).head(MOST), roofs(trace)
    figure, axes = static_figure(without_math(_title(trace)), 3.4, X_TITLE)
    axes.set(xscale="log", yscale="log")
    axes.set_ylabel(Y_TITLE, fontsize=9)
    for name, x, y, dash in _roof_lines(points, known):
        axes.plot(x, y, ":" if dash == "dot" else "-", color=INK, linewidth=1)
        axes.annotate(without_math(name), (x[-1], y[-1]), fontsize=7, ha="right", va="bottom", color=INK)
    for bound, of in points.assign(bound=points["bound"].fillna("nothing")).groupby("bound", sort=True):
        sizes = (_sizes(of, points) / 1.8) ** 2
        axes.scatter(
            of["intensity"],
            of["flops_per_s"],
            sizes,
            color=_color(bound),
            alpha=0.6,
            linewidth=0,
            label=f"{bound} bound",
        )
    for row in points.drop_duplicates("op").head(NAMED).to_dict("records"):
        place = (row["intensity"], row["flops_per_s"])
        axes.annotate(without_math(short_op(row["op"])), place, (4, -9), textcoords="offset points", fontsize=6)
    if len(points):
        axes.legend(frameon=False, fontsize=8, loc="lower right")
    return figure


def _title(trace: Trace) -> str:
    """Says how much of the time the drawn ops take: what computes nothing has no place in the chart."""
    whole, drawn = float(trace.costs["time_us"].sum()), float(attained(trace).head(MOST)["time_us"].sum())
    share = drawn / (whole or 1.0)
    device = trace.meta.get("cost_device")
    title = f"{TITLE} on {shown(str(device['name']))}" if device else TITLE
    return title if share > ALL_OF_IT else f"{title}: ops that compute, {units.share(share)} of its time"


def _color(bound: object) -> str:
    return BOUND_COLORS.get(str(bound), OTHER_COLOR)


def _about(row: "dict[object, object]") -> str:
    rate = units.flops(float(str(row["flops_per_s"])))
    time = units.duration(float(str(row["time_us"])))
    calls = units.counted(int(str(row["calls"])), "call")
    return f"{short_op(str(row['op']))}, {row['dtype']}: {calls}, {time}, {rate}/s"


def _sizes(of: pd.DataFrame, points: pd.DataFrame) -> np.ndarray:
    """Returns the diameters of the marks: their areas are as the times."""
    share = of["time_us"].to_numpy(np.float64) / (float(points["time_us"].max()) or 1.0)
    return np.maximum(np.sqrt(share) * LARGEST_MARK, SMALLEST_MARK)


def _roof_lines(points: pd.DataFrame, known: Roofs) -> list[tuple[str, list[float], list[float], str]]:
    """Returns name, ends and look of each roof over the intensities that are drawn, and a little beyond."""
    if not len(points):
        return []
    low, high = float(points["intensity"].min()) / 2, float(points["intensity"].max()) * 2
    lines = []
    highest = max(known.flops_per_s.values(), default=None)
    if known.bytes_per_s is not None:
        ridge = high if highest is None else highest / known.bytes_per_s
        # Both roofs are shown, with an order of magnitude of each.
        low, high = min(low, ridge / 10), max(high, ridge * 2)
        ends = [low * known.bytes_per_s, ridge * known.bytes_per_s]
        lines.append((f"{units.data_size(known.bytes_per_s)}/s", [low, ridge], ends, "dot"))
    for dtype, rate in known.flops_per_s.items():
        start = low if known.bytes_per_s is None else max(rate / known.bytes_per_s, low)
        lines.append((f"{dtype}: {units.flops(rate)}/s", [start, high], [rate, rate], "solid"))
    return lines
