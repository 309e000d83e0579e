"""Box plot of the repeats of a step: its time, and that of its slowest ops."""

import numpy as np
import pandas as pd

from nbkit import units
from nbkit.analysis.time.times import computing_ops
from nbkit.errors import OptionError
from nbkit.schema import SAMPLES
from nbkit.trace.checks import checked_count, checked_trace
from nbkit.trace.trace import Trace
from nbkit.views.plots.figures import LiveFigure, cut_names
from nbkit.views.plots.picture.live import live_picture
from nbkit.views.plots.picture.picture import Chart, Picture, Series
from nbkit.views.summary.names import short_op

STEP_COLOR, OP_COLOR = "#a855f7", "#3b82f6"


def plot_repeats(trace: Trace, count: int = 8) -> "LiveFigure":
    """Returns live box plots of the step's time over the repeats of optime, and of its slowest kinds of op.

    Boxes are quartiles with the median, their ends the fastest and the slowest repeat, points the repeats. The time of
    a kind of op is the self time of its calls in a repeat.
    Raises OptionError for a trace with fewer than two repeats, or a count below 1.
    """
    return live_picture(repeats_picture(trace, count))


def repeats_picture(trace: Trace, count: int = 8) -> Picture:
    """Describes plot_repeats."""
    checked_count("count", count)
    samples = SAMPLES.check(checked_trace(trace).frames.get("samples", SAMPLES.frame()))
    if (repeats := samples["repeat"].nunique()) < 2:
        if trace.meta.get("verb") == "opdoctor":
            raise OptionError("opdoctor keeps the medians of its runs alone; optime(repeats=5) keeps each of them.")
        raise OptionError("This trace has no repeats of the step; `%%optime -r 5`, or optime(repeats=5), records them.")
    step = samples[samples["op_id"] == 0].sort_values("repeat")["total_time_us"] / 1e3
    charts = [
        _chart({"step": step.to_numpy(np.float64)}, STEP_COLOR, "wall time (ms)"),
        _chart(_of_ops(samples, trace.ops, count), OP_COLOR, "self time of all calls (ms)"),
    ]
    title = f"Time of the step and of its slowest ops over {units.counted(repeats, 'repeat')}"
    return Picture(title, charts, height=0.7 + 0.11 * (count + 1), shares_x=False)


def _of_ops(samples: pd.DataFrame, ops: pd.DataFrame, count: int) -> dict[str, "np.ndarray"]:
    """Returns the self times in ms of the slowest kinds of op by repeat, by the median the slowest first."""
    names = computing_ops(ops).set_index("op_id")["op"]
    times = samples.assign(op=samples["op_id"].map(names)).dropna(subset=["op"])
    table = times.pivot_table(index="op", columns="repeat", values="self_time_us", aggfunc="sum") / 1e3
    slowest = table.median(axis=1).sort_values(ascending=False, kind="stable").index[:count]
    shown = cut_names([short_op(str(op)) for op in slowest])
    return {name: table.loc[op].dropna().to_numpy(np.float64) for name, op in zip(shown, slowest, strict=True)}


def _chart(times: dict[str, "np.ndarray"], color: str, title: str) -> Chart:
    names = [*times]
    rows = [name for name in names for _ in times[name]]
    texts = [
        f"{name}, repeat {at}: {units.duration(time * 1e3)}" for name in names for at, time in enumerate(times[name])
    ]
    boxes = Series("", [*times.values()], names, color, "boxes")
    points = Series("", [time for name in names for time in times[name].tolist()], rows, color, "points", texts, 6.0)
    return Chart([boxes, points], title, rows=names, weight=len(names) + 1.0)
