"""Plots of one compared tensor: error histogram, actual against expected, and where in the tensor the errors are."""

from typing import Any

import numpy as np

from nbkit import units
from nbkit.analysis.query.diff_table import worst_first
from nbkit.analysis.values.difference import error_histogram, errors, heat_map, scatter_places
from nbkit.numerics.precision import Array
from nbkit.schema import DIFFS
from nbkit.trace.captured_values import CapturedResult
from nbkit.trace.trace import Trace
from nbkit.views.plots.figures import Figure, static_figure, without_math
from nbkit.views.summary.names import shown

Plot = dict[str, Any]
COLOR, LINE = "#3b82f6", "#d97706"
HISTOGRAM, SCATTER, HEAT_MAP = "Errors", "Actual against expected", "Errors over the tensor"


def difference_plots(result: CapturedResult) -> list[Plot]:
    """Returns the data of the three plots of widgets/src/diff_table; none where shapes differ or are empty.

    Each has kind, title, description, x_title and y_title. Of a histogram `edges` are decimal logarithms and `counts`
    elements; a scatter plot has `expected` and `actual`, null where not finite; of a heat map `cells` are rows of the
    largest errors, null for NaN or Inf on one side, `cell` how many elements one is high and wide, and `largest` the
    largest number.
    """
    if result.shape != result.expected_shape or not len(result.actual):
        return []
    sizes = errors(result)
    return [_histogram(sizes), _scatter(result, sizes), _heat_map(result, sizes)]


def _histogram(sizes: Array) -> Plot:
    spread = error_histogram(sizes)
    counts = _counts(spread.exact, spread.unknown, len(sizes))
    return {
        "kind": "histogram",
        "title": f"{HISTOGRAM}: {counts}",
        "description": f"Histogram of |actual - expected|: {counts}.",
        "x_title": "|actual − expected|",
        "y_title": "elements",
        "edges": _numbers(spread.edges),
        "counts": spread.counts.tolist(),
    }


def _scatter(result: CapturedResult, sizes: Array) -> Plot:
    chosen = scatter_places(sizes)
    few = "" if len(chosen) == len(sizes) else f", {units.count(len(chosen))} of {units.counted(len(sizes), 'element')}"
    kind = " (magnitudes)" if np.iscomplexobj(result.actual) else ""
    return {
        "kind": "scatter",
        "title": f"{SCATTER}{kind}{few}",
        "description": f"Scatter plot of actual against expected values{few}; correct ones lie on the line.",
        "x_title": "expected",
        "y_title": "actual",
        "expected": _numbers(_real(result.expected[chosen])),
        "actual": _numbers(_real(result.actual[chosen])),
    }


def _heat_map(result: CapturedResult, sizes: Array) -> Plot:
    matrix, (high, wide) = heat_map(sizes, result.shape)
    span = "" if (high, wide) == (1, 1) else f", a cell is {high} × {wide} elements"
    rows, columns = _dimensions(len(result.shape))
    return {
        "kind": "heat_map",
        "title": f"{HEAT_MAP}{span}",
        "description": f"Heat map of the largest errors over the tensor {list(result.shape)}{span}.",
        "x_title": columns,
        "y_title": rows,
        "cells": [_numbers(row) for row in matrix],
        "cell": [high, wide],
        "largest": _number(float(np.max(matrix[np.isfinite(matrix)], initial=0.0))),
    }


def worst_difference(trace: Trace) -> "list[Figure]":
    """Draws the static plots of the worst row with captured values; none if there is no such row."""
    diffs = trace.frames.get("diffs", DIFFS.frame())
    for row in worst_first(diffs).tolist():
        call = trace.captured.get(int(diffs["op_id"].iloc[row]))
        captured = call and call.result(str(diffs["role"].iloc[row]), int(diffs["position"].iloc[row]))
        if captured and captured.shape == captured.expected_shape and len(captured.actual):
            return [draw_difference(captured, f"Worst difference: {shown(str(diffs['op'].iloc[row]))}")]
    return []


def draw_difference(result: CapturedResult, title: str) -> "Figure":
    """Draws the three plots side by side as a static figure."""
    figure, histogram = static_figure(without_math(title), 2.6, "log10 |actual - expected|", 10.5)
    sizes = errors(result)
    spread = error_histogram(sizes)
    if len(spread.counts):
        histogram.stairs(spread.counts, spread.edges, fill=True, color=COLOR)
    histogram.set_ylabel("elements", fontsize=9)
    grid = figure.add_gridspec(1, 3)
    histogram.set_subplotspec(grid[0])
    scatter, heat = figure.add_subplot(grid[1]), figure.add_subplot(grid[2])
    chosen = scatter_places(sizes, 500)
    expected, actual = _real(result.expected[chosen]), _real(result.actual[chosen])
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
    """Names the axes of a heat map."""
    rows = {0: "", 1: "", 2: "dimension 0"}.get(count, f"dimensions 0 to {count - 2}")
    return rows, f"dimension {count - 1}" if count else ""


def _ends(expected: Array, actual: Array) -> list[float]:
    both = np.concatenate([expected, actual])
    both = both[np.isfinite(both)]
    return [float(both.min()), float(both.max())] if len(both) else [0.0, 1.0]


def _real(values: Array) -> Array:
    return np.abs(values) if np.iscomplexobj(values) else values.astype(np.float64)


def _numbers(values: Array) -> list[float | None]:
    return [_number(value) for value in values.tolist()]


def _number(value: float) -> float | None:
    """Rounds to six digits, as no plot shows more; NaN and Inf become null, which JSON lacks."""
    return float(f"{value:.6g}") if np.isfinite(value) else None
