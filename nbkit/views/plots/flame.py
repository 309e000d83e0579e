"""The flame graph as a static figure, for papers."""

from typing import Any

from nbkit.trace.trace import Trace
from nbkit.views.flamegraph.boxes import flame_boxes
from nbkit.views.flamegraph.svg import box_label
from nbkit.views.plots.figures import Figure, static_figure, without_math
from nbkit.views.summary.facts import phase_color
from nbkit.views.summary.names import shown

TITLE = "Time by call path, heaviest first"
# Inches per row of boxes, and the share of the figure's width that a letter of the labels takes.
ROW, CHARACTER = 0.19, 0.0062
WIDTH, ALPHA = 9.0, 0.55


def draw_flame(trace: Trace, count: int = 300) -> "Figure":
    """Draws an icicle of the widest `count` call paths, equal ones merged, colored by phase."""
    boxes = flame_boxes(trace.ops, count)
    depth = int(boxes["depth"].max()) + 1 if len(boxes) else 1
    figure, axes = static_figure(TITLE, 0.9 + ROW * depth, "time (ms)", WIDTH)
    if not len(boxes):
        return figure
    left, width = boxes["left_us"] / 1e3, boxes["total_us"] / 1e3
    colors = [phase_color(phase) for phase in boxes["phase"]]
    axes.barh(boxes["depth"], width, 0.92, left, color=colors, alpha=ALPHA, edgecolor="white", linewidth=0.4)
    whole_ms = float((left + width).max()) or 1.0
    labels = [box_label(op, calls) for op, calls in zip(boxes["op"], boxes["calls"], strict=True)]
    for label, row, start, size in zip(labels, boxes["depth"], left, width, strict=True):
        room = int(size / whole_ms / CHARACTER) - 1
        if room >= 4:
            cut = label if len(label) <= room else f"{label[: room - 1]}…"
            axes.text(start + whole_ms * 0.003, row, without_math(cut), va="center", fontsize=6)
    _name_colors(axes, list(boxes["phase"].unique()))
    axes.set(xlim=(0, whole_ms), ylim=(depth - 0.5, -0.5))
    axes.yaxis.set_visible(False)
    axes.spines["left"].set_visible(False)
    return figure


def _name_colors(axes: Any, phases: list[str]) -> None:
    from matplotlib.patches import Patch

    patches = [Patch(color=phase_color(phase), alpha=ALPHA, label=without_math(shown(phase))) for phase in phases]
    axes.legend(handles=patches, frameon=False, fontsize=7, ncols=4, loc="lower right", bbox_to_anchor=(1, 1))
