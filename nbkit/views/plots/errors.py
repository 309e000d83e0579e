"""Errors in call order: of opdiff beside what rounding allows, of opalign relative to the left side."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from nbkit import units
from nbkit.errors import OptionError
from nbkit.numerics.noise_ratio import HARMLESS, THRESHOLD
from nbkit.schema import ALIGNMENT, DIFFS
from nbkit.trace.checks import checked_trace
from nbkit.trace.trace import Trace
from nbkit.views.alignment.verdicts import first_row
from nbkit.views.plots.figures import LiveFigure
from nbkit.views.plots.picture.live import live_picture
from nbkit.views.plots.picture.picture import MARK_COLOR, Chart, Picture, Series
from nbkit.views.plots.thinned import seen_rows
from nbkit.views.summary.facts import phase_color
from nbkit.views.summary.names import short_op, shown, shown_module

X_TITLE = "result, in call order"
# Points of a phase at most are about four times as many.
BUCKETS = 150


def plot_errors(trace: Trace) -> "LiveFigure":
    """Returns live points of the error of each result in call order, forward and backward, of opdiff or opalign.

    Of opdiff it is the noise ratio, with the threshold above which it is an error; with `against` also the relative
    error of the step so far. Of opalign it is the relative error, beside what is allowed. The first divergence is
    marked; results without any error stand on the lower edge, NaN and Inf on the upper one. Raises OptionError for
    other traces.
    """
    return live_picture(errors_picture(trace))


def errors_picture(trace: Trace) -> Picture:
    """Describes plot_errors."""
    frames = checked_trace(trace).frames
    if len(frames.get("diffs", ())):
        return _of_diffs(trace, DIFFS.check(trace.diffs))
    if len(frames.get("alignment", ())):
        return _of_alignment(trace, ALIGNMENT.check(trace.alignment))
    raise OptionError("This trace compares nothing; opdiff and opalign record errors.")


def _of_diffs(trace: Trace, diffs: pd.DataFrame) -> Picture:
    threshold = float(trace.meta.get("threshold") or THRESHOLD)
    wrong = diffs.index[~diffs["status"].isin(HARMLESS)].tolist()
    first = wrong[0] if wrong else None
    across = [(threshold, f"threshold {threshold:g}")]
    charts = [_chart(diffs, "noise_ratio", "error / what rounding allows", first, across)]
    if diffs["total_error"].notna().any():
        charts.append(_chart(diffs, "total_error", "relative error of the step", first, []))
    count = f"{units.count(len(wrong))} of {units.counted(len(diffs), 'result')} wrong"
    caption = f"{count}, first {_name(diffs, first)}" if first is not None else count
    return _picture_of("Error of each result beside what rounding allows", charts, caption, diffs["noise_ratio"])


def _of_alignment(trace: Trace, rows: pd.DataFrame) -> Picture:
    first = first_row(trace)
    known = rows[rows["output_error"].notna() & ~rows["kind"].isin(["parameter", "buffer", "constant"])]
    allowed = known["allowed_error"].where(known["allowed_error"] > 0).dropna()
    chart = _chart(known, "output_error", "relative error", first, [], allowed.tolist())
    few = allowed.iloc[seen_rows(allowed.to_numpy(np.float64), BUCKETS)]
    line = Series("allowed", few.index.tolist(), few.tolist(), MARK_COLOR, "steps", is_dotted=True)
    said = "no divergence" if first is None else f"first divergence: {_name(rows, first)}"
    charts = [replace(chart, series=[*chart.series, *([line] if len(few) else [])])]
    return _picture_of("Relative error of each result", charts, said, known["output_error"])


def _picture_of(title: str, charts: list[Chart], said: str, values: pd.Series) -> Picture:
    parts = [
        said,
        f"{units.count(zeros)} without any error on the lower edge" if (zeros := int((values == 0).sum())) else "",
        f"{units.count(unknown)} not known" if (unknown := int(values.isna().sum())) else "",
    ]
    charts[-1] = replace(charts[-1], x_title=X_TITLE)
    return Picture(title, charts, "; ".join(filter(None, parts)), height=2.4)


def _chart(
    rows: pd.DataFrame,
    column: str,
    title: str,
    first: int | None,
    across: list[tuple[float, str]],
    limits: Sequence[float] = (),
) -> Chart:
    values = rows[column].to_numpy(np.float64)
    drawn = values[np.isfinite(values) & (values > 0)]
    # What has no error stands below all lines, too.
    known = [*drawn, *limits]
    lowest = min([*known, *(at for at, _ in across)], default=0.0)
    low, high = (float(lowest) / 3, float(max(known)) * 3) if len(drawn) else (0.0, 1.0)
    places = pd.Series(np.clip(values, low, high), rows.index).dropna()
    series = []
    for phase, of in places.groupby(rows["phase"].reindex(places.index).fillna("other"), sort=False):
        few = of.iloc[seen_rows(of.to_numpy(), BUCKETS)].index
        texts = [f"{_name(rows, at)}: {rows[column].loc[at]:.3g}" for at in few]
        series.append(
            Series(shown(str(phase)), few.tolist(), of[few].tolist(), phase_color(str(phase)), "points", texts)
        )
    endless = rows.index[np.isinf(values)].tolist()
    if endless:
        series.append(Series("NaN or Inf", endless, [high] * len(endless), MARK_COLOR, "points", symbol="diamond"))
    marks = [(float(first), "first")] if first is not None else []
    return Chart(series, "", title, "y" if len(drawn) else "", across=across, upright=marks)


def _name(rows: pd.DataFrame, at: int) -> str:
    row = rows.loc[[at]].iloc[0]
    module = f" in {shown_module(None, row['module'])}" if isinstance(row["module"], str) else ""
    return f"{short_op(str(row['op']))}{module}, {row['phase']}"
