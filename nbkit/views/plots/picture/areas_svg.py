"""Writes a picture of stacked areas as svg; to import matplotlib for it takes longer than many a step on shapes."""

from collections.abc import Callable, Iterator
from html import escape
from typing import Any

import numpy as np

from nbkit.views.plots.figures import phase_color
from nbkit.views.plots.picture.picture import MARK_COLOR, Chart, Picture
from nbkit.views.summary.names import shown

# In units of the viewBox, which are pixels where there is room.
WIDTH, HEIGHT, LEFT, RIGHT, LINE, FONT, TITLE = 900, 210, 64, 892, 16, 11, 13
TICKS, COLUMNS, LETTERS = 6, 4, 48
Scale = Callable[[Any], Any]  # of a place or an array of them


def areas_svg(picture: Picture) -> str:
    """Writes the one chart of a picture, with its areas, bands and upright marks, in the colors of the page."""
    (chart,) = picture.charts
    heading = picture.heading(picture.width)
    top = LINE * (len(heading) + 1) + 4
    base, x = top + HEIGHT, np.asarray(chart.series[0].x, np.float64)
    low, high = float(x[0]), float(x[-1])
    heights = np.cumsum([series.y for series in chart.series], axis=0)
    most = float(heights.max()) * 1.05 or 1.0

    def across(at: Any) -> Any:
        return LEFT + (at - low) * (RIGHT - LEFT) / ((high - low) or 1.0)

    lines = [_steps(across(x), base - height * HEIGHT / most, base) for height in heights]
    parts = [
        *(_text(0, LINE * row, line, f'font-size="{TITLE}"') for row, line in enumerate(heading, 1)),
        f'<g opacity=".75">{"".join(_areas(chart, lines))}</g>',
        *_marks(chart, across, top),
        *_axes(chart, (low, high), across, most, base),
        *_legend(chart, base + 3 * LINE),
    ]
    height = base + LINE * (4 + (len(chart.series) - 1) // COLUMNS)
    return (
        f'<svg viewBox="0 0 {WIDTH} {height}" width="100%" role="img" aria-label="{escape(picture.title)}" '
        f'font-family="system-ui,sans-serif" font-size="{FONT}" fill="currentColor">{"".join(parts)}</svg>'
    )


def _areas(chart: Chart, lines: list[str]) -> Iterator[str]:
    # Each lies on the whole of those below it: what is seen of it is its own part.
    for series, line in zip(chart.series[::-1], lines[::-1], strict=True):
        yield f'<path fill="{series.color}" d="{line}"/>'


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
        yield _text(across((first + last) / 2), top - 4, shown(phase, LETTERS), 'text-anchor="middle"')
    for at, name in chart.upright:
        left, side = across(at), "end" if across(at) > WIDTH / 2 else "start"
        line = f"M{left:.1f} {top}V{top + HEIGHT}"
        yield f'<path d="{line}" stroke="{MARK_COLOR}" stroke-dasharray="2 2" fill="none"/>'
        beside = left + (4 if side == "start" else -4)
        yield _text(beside, top + LINE, name, f'fill="{MARK_COLOR}" text-anchor="{side}"')


def _axes(chart: Chart, ends: tuple[float, float], across: Scale, most: float, base: int) -> Iterator[str]:
    yield f'<path d="M{LEFT} {base - HEIGHT}V{base}H{RIGHT}" stroke="currentColor" fill="none"/>'
    for at in _ticks(*ends):
        yield _text(across(at), base + LINE, f"{at:,g}", 'text-anchor="middle"')
    for at in _ticks(0.0, most):
        yield _text(LEFT - 6, base - at * HEIGHT / most + 4, f"{at:,g}", 'text-anchor="end"')
    yield _text((LEFT + RIGHT) / 2, base + 2 * LINE, chart.x_title, 'text-anchor="middle"')
    middle = base - HEIGHT / 2
    yield _text(12, middle, chart.y_title, f'text-anchor="middle" transform="rotate(-90 12 {middle})"')


def _ticks(low: float, high: float) -> list[float]:
    """Returns round numbers between two, at most TICKS or so."""
    least = ((high - low) or 1.0) / TICKS
    power = 10.0 ** np.floor(np.log10(least))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= least)
    return [float(step * number) for number in range(int(np.ceil(low / step)), int(high / step) + 1)]


def _legend(chart: Chart, top: int) -> Iterator[str]:
    """Yields color and name of the areas, the uppermost first."""
    for number, series in enumerate(chart.series[::-1]):
        left, y = LEFT + number % COLUMNS * 200, top + number // COLUMNS * LINE
        yield f'<rect x="{left}" y="{y}" width="9" height="9" fill="{series.color}" opacity=".75"/>'
        yield _text(left + 14, y + 9, series.name)


def _text(x: float, y: float, text: str, look: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" {look}>{escape(text)}</text>'
