"""Draws the flame graph as a static picture: SVG that needs no script and no library, with a tooltip per box."""

from html import escape

from nbkit import units
from nbkit.trace.trace import Trace
from nbkit.views.flamegraph.boxes import flame_boxes
from nbkit.views.summary.facts import phase_color
from nbkit.views.summary.names import shown

WIDTH, ROW, FONT = 1000, 18, 11
# Width of a letter of that font, for names cut to their box; what is shorter than MIN_LABEL tells nothing.
CHARACTER, MIN_LABEL = 6.2, 4
Position = tuple[float, int, float]


def flame_svg(trace: Trace, count: int = 300) -> str:
    """Draws the widest boxes as SVG in the page's colors; empty for a trace without ops."""
    boxes = flame_boxes(trace.ops, count)
    if not len(boxes):
        return ""
    whole_us = float(boxes.loc[boxes["depth"] == 0, "total_us"].sum()) or 1.0
    label = f"Flame graph of {units.duration(whole_us)}: the {units.counted(len(boxes), 'widest call path')}"
    columns = (boxes[name].tolist() for name in ("op", "phase", "calls", "depth", "left_us", "total_us", "self_us"))
    drawn = (
        box(box_label(op, calls), f"{phase} · {_times(total_us, self_us, whole_us)}", phase_color(phase), at)
        for op, phase, calls, depth, left_us, total_us, self_us in zip(*columns, strict=True)
        for at in [position(left_us, depth, total_us, whole_us)]
    )
    return svg(label, int(boxes["depth"].max()) + 1, "".join(drawn))


def position(left_us: float, depth: int, width_us: float, whole_us: float) -> Position:
    """Returns the left edge, top and width of a box of a picture that is `whole_us` wide."""
    return left_us / whole_us * WIDTH, depth * ROW, width_us / whole_us * WIDTH


def svg(label: str, rows: int, drawn: str) -> str:
    """Returns the svg element of boxes that are `rows` deep."""
    return (
        f'<svg viewBox="0 0 {WIDTH} {rows * ROW}" width="100%" role="img" aria-label="{escape(label)}" '
        f'font-family="system-ui,sans-serif" font-size="{FONT}" style="display:block">{drawn}</svg>'
    )


def box_label(op: str, calls: int) -> str:
    """Says what is written in a box: the op, and how many calls of it there were."""
    return f"{shown(op)} ×{calls:,}" if calls > 1 else shown(op)


def _times(total_us: float, self_us: float, whole_us: float) -> str:
    return f"{units.duration(total_us)} total, {units.duration(self_us)} self, {units.share(total_us / whole_us)}"


def box(label: str, figures: str, color: str, at: Position) -> str:
    """Draws a box with as much of its label as fits; its tooltip has the whole label and the figures."""
    left, top, width = at
    room = int((width - 6) / CHARACTER)
    cut = label if len(label) <= room else f"{label[: room - 1]}…"
    text = (
        f'<text x="{left + 3:.2f}" y="{top + 13}" fill="currentColor">{escape(cut)}</text>' if room >= MIN_LABEL else ""
    )
    return (
        f'<g><title>{escape(label)} · {escape(figures)}</title><rect x="{left:.2f}" y="{top}" '
        f'width="{max(width - 0.5, 0.5):.2f}" height="{ROW - 1}" fill="{color}" fill-opacity=".35"/>{text}</g>'
    )
