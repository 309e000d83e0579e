"""Empty figures in our look, live and static, and names that neither library reads as markup.

plotly reads simple HTML in names, so they are escaped for it; matplotlib reads formulas between dollar signs.
"""

from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Figure

    from nbkit.views.plots.live_figure import LiveFigure as LiveFigure
else:  # what draws them is slow to import: plotly and matplotlib
    Figure = LiveFigure = Any

MAX_NAME = 48
# Read on light pages and on dark ones: a figure in a cell has the page's own background.
INK, LINES, NO_COLOR = "#7f7f7f", "rgba(128, 128, 128, 0.3)", "rgba(0, 0, 0, 0)"


def translucent(color: str, alpha: float) -> str:
    """Returns a color such as #3b82f6 with an opacity, as plotly reads it."""
    red, green, blue = (int(color[place : place + 2], 16) for place in (1, 3, 5))
    return f"rgba({red}, {green}, {blue}, {alpha})"


def cut_names(names: list[str]) -> list[str]:
    """Cuts names for an axis, and numbers those that become equal, so that each keeps its bar."""
    cut = [name if len(name) <= MAX_NAME else f"…{name[1 - MAX_NAME :]}" for name in names]
    return [f"{name} ({number})" if cut.count(name) > 1 else name for number, name in enumerate(cut, 1)]


def without_markup(name: str) -> str:
    """Escapes a name for plotly."""
    return escape(name, quote=False)


def without_math(name: str) -> str:
    """Escapes a name for matplotlib, which refuses a bad formula."""
    return name.replace("$", r"\$")


def live_figure(traces: list[Any], title: str, height: int, x_title: str) -> "LiveFigure":
    """Makes a live figure with a title over what is drawn in it."""
    # plotly is slow to import, and not every session plots.
    from nbkit.views.plots.live_figure import LiveFigure

    margin = {"l": 10, "r": 10, "t": 45, "b": 45}
    figure = LiveFigure(traces)
    figure.update_layout(title=title, height=height, xaxis_title=x_title, margin=margin)
    return on_any_page(figure)


def on_any_page(figure: "LiveFigure") -> "LiveFigure":
    """Gives the figure no background and colors that can be read on light and dark."""
    figure.update_layout(paper_bgcolor=NO_COLOR, plot_bgcolor=NO_COLOR, font_color=INK)
    for update in (figure.update_xaxes, figure.update_yaxes):
        update(gridcolor=LINES, zerolinecolor=LINES, linecolor=LINES)
    return figure


def static_figure(title: str, height: float, x_title: str, width: float = 6.5) -> "tuple[Figure, Any]":
    """Makes an empty static figure, sizes in inches, and its axes."""
    # Figure without pyplot: no global state, no window, nothing to close.
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.subplots()
    axes.set_title(title, loc="left", fontsize=10)
    axes.set_xlabel(x_title, fontsize=9)
    plain_axes(axes)
    return figure, axes


def plain_axes(axes: Any) -> None:
    """Gives axes small ticks, and no lines above and to the right."""
    axes.tick_params(labelsize=8)
    axes.spines[["top", "right"]].set_visible(False)
