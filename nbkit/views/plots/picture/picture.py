"""Picture describes charts below each other once, for `live_picture` and `static_picture`; its texts are plain."""

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Any, Literal

import numpy as np

MARK_COLOR = "#d64545"
# From this ratio of largest to smallest on, what is above zero has a logarithmic axis.
WIDE = 50.0
# Characters of a line of the title, and rows of which each has its name.
LINE, NAMED = 74, 40


@dataclass(frozen=True)
class Series:
    """A series of a chart; without a name it is in no legend.

    `y` names the rows of bars and boxes, of which `x` has the lengths, or the list of values of each box. Areas are
    stacked. `texts` are what a live picture says of each place, `sizes` diameters of points in pixels.
    """

    name: str
    x: Sequence[Any]
    y: Sequence[Any]
    color: str
    kind: Literal["line", "steps", "area", "points", "bars", "boxes"] = "line"
    texts: Sequence[str] = ()
    sizes: float | Sequence[float] = 5.0
    is_dotted: bool = False
    symbol: Literal["circle", "x", "diamond"] = "circle"


@dataclass(frozen=True)
class Chart:
    """Series on common axes; `log` names those that are logarithmic, `rows` are those of a y axis of names, from top.

    `across` and `upright` are marked places on the y and on the x axis with a label. `bands` are phases with their ends
    on the x axis. `notes` are texts at x and y, which a live picture has in its legend or says of a place.
    `weight` is its share of the height.
    """

    series: Sequence[Series]
    x_title: str = ""
    y_title: str = ""
    log: Literal["", "x", "y", "xy"] = ""
    rows: Sequence[str] = ()
    across: Sequence[tuple[float, str]] = ()
    upright: Sequence[tuple[float, str]] = ()
    bands: Sequence[tuple[str, float, float]] = ()
    notes: Sequence[tuple[str, float, float]] = ()
    from_zero: bool = False
    weight: float = 1.0

    def long_bands(self) -> list[tuple[str, float, float]]:
        """Returns the bands that are wide enough for their names."""
        whole = max((last for *_, last in self.bands), default=0.0)
        return [(phase, first, last) for phase, first, last in self.bands if last - first >= 0.08 * max(whole, 1.0)]


@dataclass(frozen=True)
class Picture:
    """Charts below each other, with a title and what is said below it; `height` is that of a chart, in inches."""

    title: str
    charts: Sequence[Chart]
    caption: str = ""
    height: float = 2.6
    width: float = 6.5
    shares_x: bool = True

    def heading(self, inches: float = 6.5) -> list[str]:
        """Returns the lines of title and caption for a width."""
        return [line for text in (self.title, self.caption) for line in wrap(text, round(LINE * inches / 6.5))]

    @property
    def has_legend(self) -> bool:
        """Tells whether there are series to be told apart."""
        return sum(bool(series.name) for chart in self.charts for series in chart.series) > 1


def log_if_wide(values: Sequence[float] | np.ndarray, axis: Literal["x", "y"]) -> Literal["", "x", "y"]:
    """Returns the axis if the finite values are above zero and of very different sizes; empty if not."""
    known = np.asarray(values, np.float64)
    known = known[np.isfinite(known)]
    return axis if len(known) and known.min() > 0 and known.max() > WIDE * known.min() else ""


def quartiles(values: Sequence[float]) -> list[float]:
    """Returns smallest, lower quartile, median, upper quartile and largest of the values of a box."""
    return [float(value) for value in np.quantile(np.asarray(values, np.float64), [0, 0.25, 0.5, 0.75, 1])]
