"""Writes a picture of stacked areas as svg; to import matplotlib for it takes longer than many a step on shapes."""

from collections.abc import Callable, Iterator
from html import escape
from typing import Any

import numpy as np

from nbkit.views.plots.picture.picture import MARK_COLOR, Chart, Picture
from nbkit.views.summary.facts import phase_color
from nbkit.views.summary.names import shown

# In units of the viewBox, which are pixels where there is room.
WIDTH, HEIGHT, LEFT, RIGHT, LINE = 900, 210, 64, 892, 16
TICKS, LONGEST = 6, 48
Scale = Callable[[Any], Any]  # of a value or an array of them


def areas_svg(picture: Picture) -> str:
    """Writes the one chart of a picture, with its areas, bands and upright marks, in the colors of the page."""
    (chart,), heading = picture.charts, picture.heading(picture.width)
    top = LINE * (len(heading) + 1) + 4
    base = top + HEIGHT
    x, heights = np.array(chart.series[0].x, float), np.cumsum([series.y for series in chart.series], axis=0)
    ends = (float(x[0]), float(x[-1])), (0.0, float(heights.max()) * 1.05)
    across, up = _scale(*ends[0], LEFT, RIGHT), _scale(*ends[1], base, top)
    # Each lies on the whole of those below it: what is seen of it is its own part. Its line shows a peak within one op.
    areas = [
        f'<path fill="{series.color}" stroke="{series.color}" d="{_steps(across(x), up(height), base)}"/>'
        for series, height in zip(chart.series[::-1], heights[::-1], strict=True)
    ]
    names = [f'<tspan fill="{series.color}">■</tspan> {escape(series.name)}' for series in chart.series[::-1]]
    parts = [
        *(_text(0, LINE * row, escape(line), 'font-size="13"') for row, line in enumerate(heading, 1)),
        f'<g opacity=".75">{"".join(areas)}</g>',
        *_marks(chart, across, top),
        *_axes(chart, *ends, across, up),
        _text(LEFT, base + 2 * LINE, " &#160; ".join(names)),
    ]
    return (
        f'<svg viewBox="0 0 {WIDTH} {base + 3 * LINE}" width="100%" role="img" aria-label="{escape(picture.title)}" '
        f'font-family="system-ui,sans-serif" font-size="11" fill="currentColor">{"".join(parts)}</svg>'
    )


def _scale(low: float, high: float, start: float, end: float) -> Scale:
    return lambda value: start + (value - low) * (end - start) / ((high - low) or 1.0)


def _axes(
    chart: Chart, ends: tuple[float, float], heights: tuple[float, float], across: Scale, up: Scale
) -> Iterator[str]:
    base, top = up(heights[0]), up(heights[1])
    for at in _ticks(*ends):
        yield _text(across(at), base + LINE, f"{at:,g}", 'text-anchor="middle"')
    for at in _ticks(*heights):
        yield _text(LEFT - 6, up(at) + 4, f"{at:,g}", 'text-anchor="end"')
    yield f'<path d="M{LEFT} {top}V{base}H{RIGHT}" stroke="currentColor" fill="none"/>'
    yield _text(RIGHT, base + 2 * LINE, escape(chart.x_title), 'text-anchor="end"')
    yield _text(0, top - 8, escape(chart.y_title))


def _steps(x: np.ndarray, y: np.ndarray, base: int) -> str:
    """Returns the path of what lies between the base and a line of steps; most places have the height of the last."""
    rows = np.flatnonzero(np.diff(y.round(1), prepend=base))
    steps = "".join(f"H{at:.1f}V{height:.1f}" for at, height in zip(x[rows].tolist(), y[rows].tolist(), strict=True))
    return f"M{x[0]:.1f} {base}{steps}H{x[-1]:.1f}V{base}Z"


def _marks(chart: Chart, across: Scale, top: int) -> Iterator[str]:
    for phase, first, last in chart.bands:
        left, width = across(first), across(last) - across(first)
        yield f'<rect x="{left:.1f}" y="{top}" width="{width:.1f}" height="5" fill="{phase_color(phase)}"/>'
    for phase, first, last in chart.long_bands():
        yield _text(across((first + last) / 2), top - 4, escape(shown(phase, LONGEST)), 'text-anchor="middle"')
    for at, name in chart.upright:
        line, side = f"M{across(at):.1f} {top}V{top + HEIGHT}", "end" if across(at) > WIDTH / 2 else "start"
        yield f'<path d="{line}" stroke="{MARK_COLOR}" stroke-dasharray="2 2" fill="none"/>'
        yield _text(across(at), top + LINE, f"&#160;{escape(name)}&#160;", f'fill="{MARK_COLOR}" text-anchor="{side}"')


def _ticks(low: float, high: float) -> list[float]:
    """Returns round numbers between two, TICKS or fewer apart."""
    least = ((high - low) or 1.0) / TICKS
    power = 10.0 ** np.floor(np.log10(least))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= least)
    return [float(step * number) for number in range(int(np.ceil(low / step)), int(high / step) + 1)]


def _text(x: float, y: float, html: str, look: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" {look}>{html}</text>'
