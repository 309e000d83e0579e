"""Says what a static figure of matplotlib shows, as plain data: for literal comparison."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def described(figure: "Figure") -> list[dict[str, Any]]:
    """Returns for each of its axes: words and their sizes, limits, lines, boxes, and what the legend says."""
    return [_axes(axes) for axes in figure.axes]


def _axes(axes: "Axes") -> dict[str, Any]:
    from matplotlib.colors import to_hex
    from matplotlib.patches import Rectangle
    from matplotlib.text import Text

    legend = axes.get_legend()
    written = [(each.get_text(), each.get_fontsize()) for each in axes.get_children() if isinstance(each, Text)]
    facts = {
        "title": [each for each in written if each[0] and each[0] == axes.get_title(loc="left")],
        "x": (axes.get_xlabel(), axes.xaxis.label.get_fontsize(), _rounded(axes.get_xlim())),
        "y": (axes.get_ylabel(), axes.yaxis.label.get_fontsize(), _rounded(axes.get_ylim())),
        "ticks": [label.get_fontsize() for label in (axes.get_xticklabels()[:1] + axes.get_yticklabels()[:1])],
        "spines": [name for name, spine in axes.spines.items() if spine.get_visible()],
        "lines": [
            (line.get_color(), line.get_linestyle(), line.get_marker(), *(_rounded(line.get_data()[n]) for n in (0, 1)))
            for line in axes.lines
        ],
        "boxes": [
            (to_hex(box.get_facecolor()), *_rounded([box.get_x(), box.get_y(), box.get_width(), box.get_height()]))
            for box in axes.patches
            if isinstance(box, Rectangle)
        ],
        "texts": [(text.get_text(), text.get_fontsize(), *_rounded(text.get_position())) for text in axes.texts],
        "legend": [text.get_text() for text in legend.get_texts()] if legend else [],
    }
    return {name: value for name, value in facts.items() if value}


def _rounded(values: Any) -> list[float]:
    return [round(float(value), 4) for value in values]
