"""Heat map of a job: what each rank takes for a module, or for a step, beside the median rank."""

from typing import Any, Literal

import numpy as np
import pandas as pd

from nbkit import units
from nbkit.errors import OptionError
from nbkit.findings.ranks.facts import call_times_query
from nbkit.trace.checks import checked_count
from nbkit.trace.job.job import Job
from nbkit.trace.trace import Trace
from nbkit.views.plots.figures import (
    LiveFigure,
    cut_names,
    live_figure,
    static_figure,
    without_markup,
    without_math,
)
from nbkit.views.summary.names import ROOT

X_TITLE, COLORS = "rank", "RdBu_r"
# Colors end at a quarter and at four times the median, in powers of two.
MOST = 2.0
TICKS = ["1/4", "1/2", "1", "2", "4"]
BAR: dict[str, Any] = {"title": "times the median", "tickvals": [-2, -1, 0, 1, 2], "ticktext": TICKS}


def plot_ranks(trace: Trace, by: Literal["module", "step"] = "module", count: int = 30) -> "LiveFigure":
    """Returns a live heat map of a job: ranks across, down the `count` modules that take longest, or the first steps.

    A cell is the self time of the module, its calls counted with their median, or that of all modules in a step:
    forward and backward, without communication. Its color says how many times that of the median rank it is. Empty
    cells have no such module or step. Raises OptionError for another trace than that of several ranks.
    """
    from plotly import graph_objects

    times = _times(trace, by, count)
    names = [without_markup(name) for name in cut_names([str(name) for name in times.index])]
    heat = graph_objects.Heatmap(
        x=[str(rank) for rank in times.columns], y=names, z=_ratios(times), zmin=-MOST, zmax=MOST, colorscale=COLORS,
        customdata=[[units.duration(us) for us in row] for row in times.to_numpy()], colorbar=BAR,
        hovertemplate="rank %{x}, %{y}: %{customdata}<extra></extra>", hoverongaps=False,
    )  # fmt: skip
    figure = live_figure([heat], _title(by), 150 + 18 * len(names), X_TITLE)
    figure.update_yaxes(autorange="reversed", type="category")
    figure.update_xaxes(type="category")
    return figure.with_static_view(lambda: _draw(times, by))


def draw_ranks(trace: Trace) -> Any:
    """Draws plot_ranks as a static figure."""
    return _draw(_times(trace, "module", 30), "module")


def has_modules(job: Job) -> bool:
    """Returns whether plot_ranks has something to draw: modules, in several ranks."""
    return "modules" in job.files and len(job.first_rows) > 1


def _draw(times: pd.DataFrame, by: str) -> Any:
    figure, axes = static_figure(_title(by), 1.2 + 0.2 * len(times), X_TITLE)
    at = np.arange(len(times.columns)), np.arange(len(times))
    image = axes.pcolormesh(*at, _ratios(times), cmap=COLORS, shading="nearest", vmin=-MOST, vmax=MOST)
    axes.set_yticks(at[1], [without_math(name) for name in cut_names([str(name) for name in times.index])])
    every = max(len(times.columns) // 16, 1)
    axes.set_xticks(at[0][::every], [str(rank) for rank in times.columns[::every]])
    axes.invert_yaxis()
    bar = figure.colorbar(image, ax=axes, ticks=BAR["tickvals"])
    bar.set_label(str(BAR["title"]), fontsize=8)
    bar.set_ticklabels(BAR["ticktext"])
    return figure


def _times(trace: Trace, by: str, count: int) -> pd.DataFrame:
    """Returns microseconds: a row per module, most time first, or per step; a column per rank."""
    if by not in ("module", "step"):
        raise OptionError(f"by={by!r} is no way to draw ranks; give 'module' or 'step'.")
    checked_count("count", count)
    if not isinstance(trace, Job) or "ops" not in trace.files:
        raise OptionError("plot_ranks() draws the ops of several ranks; give nbkit.load() of a folder of ranks.")
    # A pause of the machine is in few calls of a module.
    total = "median(self_us + device_us) * count(*)" if by == "module" else "sum(self_us + device_us)"
    found = trace.sql(f"SELECT rank, {by}, {total} AS us FROM ({call_times_query()}) GROUP BY ALL")
    if not len(found):
        raise OptionError("This job has no modules; record steps of a torch.nn.Module.")
    times = found.pivot_table(index=by, columns="rank", values="us", aggfunc="sum")
    order = times.index.sort_values() if by == "step" else times.sum(axis=1).sort_values(ascending=False).index
    return times.loc[order[:count]].rename(index={"": ROOT})


def _ratios(times: pd.DataFrame) -> np.ndarray:
    """Returns the power of two by which each time is that of the median rank; NaN where there is none."""
    values = times.to_numpy(dtype="float64", na_value=np.nan)
    usual = np.nanmedian(values, axis=1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios: np.ndarray = np.log2(values / usual)
    return ratios


def _title(by: str) -> str:
    return f"Self time of each {by} by rank, beside the median rank"
