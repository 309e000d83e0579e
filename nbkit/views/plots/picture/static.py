"""Draws a picture with matplotlib."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np

from nbkit.errors import OptionError
from nbkit.trace.trace import Trace
from nbkit.views.plots.figures import INK, MAX_NAME, Figure, plain_axes, static_figure, without_math
from nbkit.views.plots.picture.picture import MARK_COLOR, NAMED, Chart, Picture, Series, quartiles
from nbkit.views.summary.facts import phase_color
from nbkit.views.summary.names import shown

SYMBOLS = {"circle": "o", "x": "x", "diamond": "D"}
# Points of a pixel; inches of what stands above and below the axes.
POINT, LINE, BELOW = 0.56, 0.16, 0.5
LEGEND = {"frameon": False, "fontsize": 8, "handlelength": 1, "ncols": 4, "loc": "upper left"}


def static_pictures(trace: Trace, *describe: Callable[[Trace], Picture]) -> "list[Figure]":
    """Makes static figures of those pictures for which the trace has something to show."""
    figures = []
    for picture in describe:
        with suppress(OptionError):
            figures.append(static_picture(picture(trace)))
    return figures


def static_picture(picture: Picture) -> "Figure":
    """Makes a static figure of the picture."""
    heading, count = without_math("\n".join(picture.heading(picture.width))), len(picture.charts)
    height = picture.height * count + LINE * heading.count("\n") + BELOW * picture.has_legend
    figure, _ = static_figure("", height, "", picture.width)
    figure.clear()
    weights = [chart.weight for chart in picture.charts]
    every = figure.subplots(count, 1, sharex=picture.shares_x, squeeze=False, height_ratios=weights)[:, 0]
    for axes, chart in zip(every, picture.charts, strict=True):
        plain_axes(axes)
        _draw(axes, chart, 9 if count == 1 else 8)
    every[0].set_title(heading, loc="left", fontsize=10, pad=14 if picture.charts[0].bands else None)
    if picture.has_legend:
        handles, labels = every[-1].get_legend_handles_labels()
        under = -BELOW / max(picture.height - 0.8, 0.5)
        every[-1].legend(handles[::-1], labels[::-1], bbox_to_anchor=(0.0, under), **LEGEND)
    return figure


def _draw(axes: Any, chart: Chart, size: int) -> None:
    axes.set_xlabel(without_math(chart.x_title), fontsize=9)
    axes.set_ylabel(without_math(chart.y_title), fontsize=size)
    for name in chart.log:
        getattr(axes, f"set_{name}scale")("log")
    # Equal names are one row, as plotly has it.
    heights = {name: place for place, name in enumerate(dict.fromkeys(reversed(chart.rows)))}
    if chart.rows:
        every = slice(None, None, -(-len(heights) // NAMED))
        axes.set_yticks([*heights.values()][every], [without_math(name) for name in heights][every])
        axes.set_ylim(-0.6, len(heights) - 0.4)
    areas = [series for series in chart.series if series.kind == "area"]
    if areas:
        axes.stackplot(
            areas[0].x, *(area.y for area in areas), labels=[without_math(area.name) for area in areas],
            colors=[area.color for area in areas], step="post", alpha=0.75, linewidth=0,
        )  # fmt: skip
    lefts = np.zeros(len(heights))
    for series in chart.series:
        if series.kind == "bars":
            places, begins = [heights[name] for name in series.y], []
            for place, length in zip(places, series.x, strict=True):
                begins.append(lefts[place])
                lefts[place] += length
            axes.barh(places, series.x, left=begins, color=series.color, label=_label(series))
        elif series.kind != "area":
            _draw_series(axes, series, heights)
    if chart.from_zero:
        axes.set_ylim(bottom=0.0)
    _mark(axes, chart)


def _label(series: Series) -> str | None:
    return without_math(series.name) or None


def _draw_series(axes: Any, series: Series, heights: dict[str, int]) -> None:
    x, y = series.x, [heights[value] if isinstance(value, str) else value for value in series.y]
    color, label = series.color, _label(series)
    if series.kind == "boxes":
        low, lower, middle, upper, high = np.array([quartiles(values) for values in x]).T
        axes.barh(y, upper - lower, 0.5, lower, color=color, alpha=0.4, label=label)
        axes.hlines(y, low, high, color=color, linewidth=1)
        axes.plot(middle, y, "|", color=color, markersize=10, markeredgewidth=2)
    elif series.kind == "points" and isinstance(series.sizes, float):
        # Of marks of one size the file has the shape once.
        look = {"markersize": series.sizes * POINT, "markeredgewidth": 1.2 if series.symbol == "x" else 0.0}
        axes.plot(x, y, SYMBOLS[series.symbol], color=color, label=label, zorder=3, clip_on=False, **look)
    elif series.kind == "points":
        axes.scatter(
            x, y, np.square(np.asarray(series.sizes) * POINT), color=color, alpha=0.6, linewidth=0, label=label
        )
    else:
        style, mark = ":" if series.is_dotted else "-", "." if series.kind == "line" and not series.is_dotted else None
        way = "steps-post" if series.kind == "steps" else "default"
        axes.plot(x, y, style, color=color, linewidth=1.2, marker=mark, markersize=4, drawstyle=way, label=label)


def _mark(axes: Any, chart: Chart) -> None:
    right, top = axes.get_yaxis_transform(), axes.get_xaxis_transform()
    look = {"color": MARK_COLOR, "linestyle": ":", "linewidth": 1.2}
    for at, text in chart.across:
        axes.axhline(at, **look)
        axes.text(1.0, at, without_math(text), fontsize=7, color=MARK_COLOR, ha="right", va="bottom", transform=right)
    for at, text in chart.upright:
        axes.axvline(at, **look)
        axes.text(at, 0.955, f" {without_math(text)}", fontsize=7, color=MARK_COLOR, va="top", transform=top)
    for phase, first, last in chart.bands:
        axes.axvspan(first, last, 0.965, 1.0, color=phase_color(phase), linewidth=0, alpha=0.8)
    for phase, first, last in chart.long_bands():
        name = without_math(shown(phase, MAX_NAME))
        axes.text((first + last) / 2, 1.005, name, fontsize=7, ha="center", va="bottom", transform=top)
    for text, x, y in chart.notes:
        axes.annotate(without_math(text), (x, y), (4, -9), textcoords="offset points", fontsize=7, color=INK)
