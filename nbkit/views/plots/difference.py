"""Plots of one compared tensor: error histogram, actual against expected, and where in the tensor the errors are.

The live ones are plotly figures as plain data: importing plotly to build three small figures would take longer than all
the rest of opening a row.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from nbkit.analysis.query.diff_table import worst_first
from nbkit.analysis.values.difference import error_histogram, errors, heat_map, scatter_places
from nbkit.numerics.precision import Array
from nbkit.schema import DIFFS
from nbkit.trace.captured_values import CapturedResult
from nbkit.trace.trace import Trace
from nbkit.views.summary import units
from nbkit.views.summary.names import shown

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Plot = dict[str, Any]
COLOR, LINE = "#3b82f6", "#d97706"
# Errors go from the page's own background to a colour that is seen on light and dark.
SCALE = [[0, "rgba(214, 69, 69, 0.06)"], [0.5, "rgba(214, 69, 69, 0.5)"], [1, "rgb(214, 69, 69)"]]
HISTOGRAM, SCATTER, HEAT_MAP = "Errors", "Actual against expected", "Errors over the tensor"


def difference_plots(result: CapturedResult) -> list[Plot]:
    """Title, description, data and layout of three plotly figures; none where the shapes differ or all is empty."""
    if result.shape != result.expected_shape or not len(result.actual):
        return []
    sizes = errors(result)
    return [_histogram(sizes), _scatter(result, sizes), _heat_map(result, sizes)]


def _histogram(sizes: Array) -> Plot:
    found = error_histogram(sizes)
    centers = (found.edges[1:] + found.edges[:-1]) / 2 if len(found.counts) else found.edges
    texts = [f"{10**low:.2g} to {10**high:.2g}" for low, high in zip(found.edges, found.edges[1:], strict=False)]
    bars = {
        "type": "bar", "x": _numbers(centers), "y": found.counts.tolist(), "marker": {"color": COLOR},
        "customdata": texts, "hovertemplate": "%{customdata}: %{y} elements<extra></extra>",
    }  # fmt: skip
    description = f"Histogram of |actual - expected|: {_counts(found.exact, found.unknown, len(sizes))}."
    # Whole powers of ten, not logarithms, at the axis.
    ticks = _powers(found.edges)
    axis = {"title": {"text": "|actual − expected|"}, "tickvals": ticks, "ticktext": [f"1e{tick}" for tick in ticks]}
    layout = {"bargap": 0.05, "xaxis": axis, "yaxis": {"title": {"text": "elements"}}}
    title = f"{HISTOGRAM}: {_counts(found.exact, found.unknown, len(sizes))}"
    return {"title": title, "description": description, "data": [bars], "layout": layout}


def _scatter(result: CapturedResult, sizes: Array) -> Plot:
    places = scatter_places(sizes)
    expected, actual = _real(result.expected[places]), _real(result.actual[places])
    points = {
        "type": "scatter", "mode": "markers", "x": _numbers(expected), "y": _numbers(actual),
        "marker": {"color": COLOR, "size": 5, "opacity": 0.6},
        "hovertemplate": "expected %{x}<br>actual %{y}<extra></extra>",
    }  # fmt: skip
    ends = _ends(expected, actual)
    diagonal = {"type": "scatter", "mode": "lines", "x": ends, "y": ends, "line": {"color": LINE, "width": 1}}
    few = "" if len(places) == len(sizes) else f", {units.count(len(places))} of {units.counted(len(sizes), 'element')}"
    layout = {"xaxis": {"title": {"text": "expected"}}, "yaxis": {"title": {"text": "actual"}}, "hovermode": "closest"}
    kind = " (magnitudes)" if np.iscomplexobj(result.actual) else ""
    return {
        "title": f"{SCATTER}{kind}{few}",
        "description": f"Scatter plot of actual against expected values{few}; right ones lie on the line.",
        "data": [{**diagonal, "hoverinfo": "skip"}, points],
        "layout": layout,
    }


def _heat_map(result: CapturedResult, sizes: Array) -> Plot:
    matrix, (high, wide) = heat_map(sizes, result.shape)
    largest = float(np.max(matrix[np.isfinite(matrix)], initial=0.0))
    # Where one side alone is NaN or Inf, the colour is that of the worst.
    shown = [[largest or 1.0 if not np.isfinite(one) else _number(one) for one in row] for row in matrix.tolist()]
    cells = {
        "type": "heatmap", "z": shown, "colorscale": SCALE, "zmin": 0, "zmax": largest or 1.0,
        "dx": wide, "dy": high, "x0": 0, "y0": 0, "showscale": True, "colorbar": {"thickness": 10, "outlinewidth": 0},
        "hovertemplate": "row %{y}, column %{x}: %{z:.3g}<extra></extra>",
    }  # fmt: skip
    span = "" if (high, wide) == (1, 1) else f", a cell is {high} × {wide} elements"
    layout = {
        "xaxis": {"title": {"text": _dimensions(len(result.shape))[1]}},
        "yaxis": {"title": {"text": _dimensions(len(result.shape))[0]}, "autorange": "reversed"},
    }
    description = f"Heat map of the largest errors over the tensor {list(result.shape)}{span}."
    return {"title": f"{HEAT_MAP}{span}", "description": description, "data": [cells], "layout": layout}


def worst_difference(trace: Trace) -> "list[Figure]":
    """The static plots of the worst row whose values were kept; none if there is no such row."""
    diffs = trace.frames.get("diffs", DIFFS.frame())
    for row in worst_first(diffs).tolist():
        call = trace.captured.get(int(diffs["op_id"].iloc[row]))
        kept = call and call.result(str(diffs["role"].iloc[row]), int(diffs["position"].iloc[row]))
        if kept and kept.shape == kept.expected_shape and len(kept.actual):
            return [draw_difference(kept, f"Worst difference: {shown(str(diffs['op'].iloc[row]))}")]
    return []


def draw_difference(result: CapturedResult, title: str) -> "Figure":
    """Static twin of the three plots side by side."""
    from nbkit.views.plots.figures import static_figure, without_math

    figure, histogram = static_figure(without_math(title), 2.6, "log10 |actual - expected|", 10.5)
    sizes = errors(result)
    found = error_histogram(sizes)
    if len(found.counts):
        histogram.stairs(found.counts, found.edges, fill=True, color=COLOR)
    histogram.set_ylabel("elements", fontsize=9)
    grid = figure.add_gridspec(1, 3)
    histogram.set_subplotspec(grid[0])
    scatter, heat = figure.add_subplot(grid[1]), figure.add_subplot(grid[2])
    places = scatter_places(sizes, 500)
    expected, actual = _real(result.expected[places]), _real(result.actual[places])
    scatter.plot(_ends(expected, actual), _ends(expected, actual), color=LINE, linewidth=1)
    is_known = np.isfinite(expected) & np.isfinite(actual)
    scatter.plot(expected[is_known], actual[is_known], ".", color=COLOR, markersize=3, alpha=0.6)
    scatter.set_xlabel("expected", fontsize=9)
    scatter.set_ylabel("actual", fontsize=9)
    matrix, _ = heat_map(sizes, result.shape, 32)
    heat.pcolormesh(np.where(np.isfinite(matrix), matrix, np.nan), cmap="Reds")
    heat.invert_yaxis()
    heat.set_xlabel(HEAT_MAP.lower(), fontsize=9)
    for axes in (scatter, heat):
        axes.tick_params(labelsize=8)
    return figure


def _counts(exact: int, unknown: int, total: int) -> str:
    parts = [units.counted(total, "element"), f"{units.count(exact)} exact"]
    return ", ".join([*parts, *([f"{units.count(unknown)} NaN or Inf on one side"] if unknown else [])])


def _dimensions(count: int) -> tuple[str, str]:
    """What the rows and the columns of a heat map are."""
    rows = {0: "", 1: "", 2: "dimension 0"}.get(count, f"dimensions 0 to {count - 2}")
    return rows, f"dimension {count - 1}" if count else ""


def _powers(edges: Array) -> list[int]:
    """Whole numbers between the edges, few enough to read."""
    if not len(edges):
        return []
    low, high = int(np.ceil(edges[0])), int(np.floor(edges[-1]))
    return list(range(low, high + 1, max((high - low) // 5, 1)))


def _ends(expected: Array, actual: Array) -> list[float]:
    both = np.concatenate([expected, actual])
    both = both[np.isfinite(both)]
    return [float(both.min()), float(both.max())] if len(both) else [0.0, 1.0]


def _real(values: Array) -> Array:
    return np.abs(values) if np.iscomplexobj(values) else values.astype(np.float64)


def _numbers(values: Array) -> list[float | None]:
    return [_number(one) for one in values.tolist()]


def _number(value: float) -> float | None:
    """Six digits, as no plot shows more; JSON has no NaN and no Inf."""
    return float(f"{value:.6g}") if np.isfinite(value) else None
