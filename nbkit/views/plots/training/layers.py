"""Heat map of a watched run: a value of each layer over the steps, joined to as many columns as a screen can show."""

from typing import Any

import numpy as np
import pandas as pd

from nbkit.errors import OptionError, nearest
from nbkit.schema import METRICS
from nbkit.schema.graphs import LAYER_VALUES
from nbkit.trace.checks import checked_trace
from nbkit.trace.trace import Trace
from nbkit.views.plots.figures import (
    LiveFigure,
    cut_names,
    live_figure,
    static_figure,
    without_markup,
    without_math,
)

COLUMNS = 200
# From this ratio on colors stand for powers of ten.
WIDE = 50.0
COLORS = "viridis"


def plot_layers(trace: Trace, value: str = "gradient_norm") -> "LiveFigure":
    """Returns a live heat map of the layers, in the order of the model, over the steps of a watched run.

    `value` is gradient_norm, weight_norm, update_norm, activation_min or activation_max. Of steps that share a column
    the largest value is shown, of activation_min the smallest; empty cells are NaN, Inf, or were not measured. Raises
    OptionError for another value, and for a trace without layers.
    """
    from plotly import graph_objects

    steps, names, cells, is_log = _cells(trace, value)
    shown = np.log10(cells) if is_log else cells
    rows = [without_markup(name) for name in cut_names(names)]
    heat = graph_objects.Heatmap(
        x=steps, y=rows, z=shown, customdata=cells, colorscale=COLORS.title(),
        colorbar={"title": _unit(value, is_log=is_log)},
        hovertemplate="step %{x}, %{y}: %{customdata:.3g}<extra></extra>", hoverongaps=False,
    )  # fmt: skip
    figure = live_figure([heat], _title(value, names), 150 + 16 * len(rows), "step")
    figure.update_yaxes(autorange="reversed", type="category")
    return figure.with_static_view(lambda: _draw(trace, value))


def _draw(trace: Trace, value: str) -> Any:
    steps, names, cells, is_log = _cells(trace, value)
    figure, axes = static_figure(_title(value, names), 1.2 + 0.18 * len(names), "step")
    shown = np.log10(cells) if is_log else cells
    image = axes.pcolormesh(steps, np.arange(len(names)), shown, cmap=COLORS, shading="nearest")
    axes.set_yticks(range(len(names)), [without_math(name) for name in cut_names(names)])
    axes.invert_yaxis()
    figure.colorbar(image, ax=axes).set_label(_unit(value, is_log=is_log), fontsize=8)
    return figure


def _cells(trace: Trace, value: str) -> tuple[np.ndarray, list[str], np.ndarray, bool]:
    """Returns the first step of each column, the layers, the cells (layers, columns), and whether they are spread."""
    if value not in LAYER_VALUES:
        raise OptionError(f"There is no value {value!r} of layers; {nearest(value, LAYER_VALUES)}")
    metrics = METRICS.check(checked_trace(trace).frames.get("metrics", METRICS.frame()))
    rows = metrics[metrics["name"].str.startswith(f"{value}/").to_numpy(dtype=bool, na_value=False)]
    if not len(rows):
        raise OptionError(
            f"This trace has no {value} of layers; opmonitor and `python -m nbkit audit` measure them at some steps."
        )
    steps = np.unique(rows["step"].to_numpy())
    edges = steps
    if len(steps) > COLUMNS:
        width = (steps[-1] - steps[0] + 1) / COLUMNS
        edges = steps[0] + np.ceil(np.unique((steps - steps[0]) // width) * width).astype(np.int64)
    names = [name.partition("/")[2] for name in rows["name"].unique()]
    column = np.searchsorted(edges, rows["step"].to_numpy(), side="right") - 1
    row = pd.Categorical(rows["name"], categories=[f"{value}/{name}" for name in names]).codes
    values = rows["value"].to_numpy(np.float64)
    is_low = value == "activation_min"
    cells = np.full((len(names), len(edges)), np.inf if is_low else -np.inf)
    finite = np.isfinite(values)
    (np.minimum if is_low else np.maximum).at(cells, (row[finite], column[finite]), values[finite])
    cells[~np.isfinite(cells)] = np.nan
    known = cells[np.isfinite(cells)]
    is_log = bool(len(known) and known.min() > 0 and known.max() > WIDE * known.min())
    return edges, names, cells, is_log


def _unit(value: str, *, is_log: bool) -> str:
    return f"{value}, power of ten" if is_log else value


def _title(value: str, names: list[str]) -> str:
    kind = "2-norm" if value.endswith("norm") else "bound of the output"
    return f"{value} ({kind}) of {len(names)} layers over steps" if len(names) > 1 else f"{value} of {names[0]}"
