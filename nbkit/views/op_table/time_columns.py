"""Adds what the op table says of times beside those of the ops: shares, phases, and how repeats of the step differ."""

from dataclasses import replace

import numpy as np
import pandas as pd

from nbkit import units
from nbkit.analysis.query.encoded import Columns, Floats, text_column
from nbkit.analysis.query.groups import IQR, LEAST, MIDDLE, RUN, over_runs
from nbkit.schema import SAMPLES, TEXT
from nbkit.trace.trace import Trace
from nbkit.views.tables.raw import Cell, raw

SHARE, FORWARD, BACKWARD, MEDIAN_US, IQR_US, MIN_US = MADE = (
    "self_fraction", "forward_us", "backward_us", "median_us", "iqr_us", "min_us",
)  # fmt: skip
SLOW = "slow_runs"
# A run disturbed a call that took so many times its median there, and so much of the step more.
DISTURBED, MUCH = 10.0, 0.01


def with_times(columns: Columns, trace: Trace) -> Columns:
    """Returns the columns with those of MADE, SLOW, and of each run of the step a column of self times.

    Work on a device runs beside the host and has no share of the step's time.
    """
    own, level, phase = columns.numbers["self_time_us"], columns.texts["level"], columns.texts["phase"]
    is_kernel = level.where((level.values == "kernel").to_numpy(bool), missing=False)
    host = np.where(is_kernel, np.nan, own)
    numbers = {SHARE: host / (np.nansum(host) or 1.0)}
    for name, value in ((FORWARD, "forward"), (BACKWARD, "backward")):
        numbers[name] = np.where(phase.where((phase.values == value).to_numpy(bool), missing=False), host, np.nan)
    runs = _runs(trace, len(columns))
    if len(runs) < 2:
        return replace(columns, numbers={**columns.numbers, **numbers})
    numbers |= {f"{RUN}{number}_us": times for number, times in enumerate(runs)}
    numbers |= {MEDIAN_US: over_runs(runs, MIDDLE), IQR_US: over_runs(runs, IQR), MIN_US: over_runs(runs, LEAST)}
    texts = {**columns.texts, SLOW: text_column(_slow(runs, own))}
    return replace(columns, texts=texts, numbers={**columns.numbers, **numbers})


def time_fields(columns: Columns, op_id: int) -> dict[str, Cell]:
    """Returns what the detail of an op says of the same."""
    names = [name for name in (SHARE, IQR_US, MIN_US) if name in columns.numbers]
    slow = {SLOW: raw(columns.texts[SLOW].text_at(op_id))} if SLOW in columns.texts else {}
    return {**{name: raw(columns.numbers[name][op_id]) for name in names}, **slow}


def _runs(trace: Trace, count: int) -> list[Floats]:
    """Returns the self time of each op in each run; NaN where a run does not have it."""
    samples = SAMPLES.check(trace.frames.get("samples", SAMPLES.frame()))
    runs = []
    for _, of_run in samples.groupby("repeat"):
        times = np.full(count, np.nan)
        times[of_run["op_id"].to_numpy()] = of_run["self_time_us"].to_numpy()
        runs.append(times)
    return runs


def _slow(runs: list[Floats], median_us: Floats) -> pd.Series:
    """Says of calls that took far longer in some runs than usual in how many: '9.96 ms in 1 of 5 runs'."""
    times = np.stack(runs)
    least_us = MUCH * np.nansum(median_us)
    with np.errstate(invalid="ignore"):
        is_slow = (times > DISTURBED * median_us) & (times > median_us + least_us)
    texts = np.full(times.shape[1], None, object)
    for row in np.flatnonzero(is_slow.any(axis=0)):
        known, slow = int((~np.isnan(times[:, row])).sum()), int(is_slow[:, row].sum())
        texts[row] = f"{units.duration(float(np.nanmax(times[:, row])))} in {slow} of {known} runs"
    return pd.Series(texts, dtype=TEXT)
