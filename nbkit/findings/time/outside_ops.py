"""Finds time of the step that is no op's: loading of data, and other code before a line's ops."""

import re

import numpy as np

from nbkit.findings.finding import Finding
from nbkit.findings.time.step import Floats, Ints, TimedStep

LOADER = re.compile(r"enumerate\(DataLoader\)#.*")
LEAST_LOADING = 0.2
LEAST_PYTHON = 0.25
# What torch and Python do between two ops takes some ten microseconds; a pause of the machine comes once.
LONG_GAP_US, FEWEST_GAPS = 300.0, 4
LOAD_EARLIER = (
    "Load ahead of the step: DataLoader(num_workers=..., persistent_workers=True), or prepare the samples once."
)
OTHER_CODE = "Profile that code by itself; compute on whole batches, or outside the step."


def data_loading(step: TimedStep) -> list[Finding]:
    """Returns a finding for each DataLoader in which the step spends much of its time."""
    findings = []
    names = step.ops["op"].where(step.ops["level"] == "range")
    for name in [name for name in names.dropna().unique() if LOADER.fullmatch(name)]:
        rows = np.flatnonzero((names == name).to_numpy(bool))
        time_us = float(step.total_us[rows].sum())
        if step.is_much(time_us, LEAST_LOADING):
            calls = "1 call" if len(rows) == 1 else f"{len(rows):,} calls"
            message = f"{step.share(time_us)} passes in loading data, {calls} of {name}"
            finding = Finding("data_loading", "hint", message, LOAD_EARLIER, effect_us=time_us)
            findings.append(step.finding(finding, rows))
    return findings


def python_code(step: TimedStep) -> list[Finding]:
    """Returns a finding per line before whose ops much time passes in code that is not torch's, again and again."""
    rows, gaps_us = _long_gaps(step)
    findings = []
    gap_of = dict(zip(rows.tolist(), gaps_us.tolist(), strict=True))
    for mine in step.lines(rows):
        time_us = sum(gap_of[row] for row in mine.tolist())
        has_line = isinstance(step.ops["source"].iloc[mine[0]], str)
        if len(mine) < FEWEST_GAPS or not has_line or not step.is_much(time_us, LEAST_PYTHON):
            continue
        message = f"{step.share(time_us)} passes outside of ops, just before this line runs one, {len(mine):,} times"
        findings.append(step.finding(Finding("python_code", "hint", message, OTHER_CODE, effect_us=time_us), mine))
    return findings


def _long_gaps(step: TimedStep) -> tuple[Ints, Floats]:
    """Returns the ops of the main thread that begin long after the op before, and the time between.

    Gaps in which other threads work are left out, and those in the backward pass, in an optimizer and in a DataLoader.
    """
    ops = step.ops
    # Calls of a device's driver may wait for it.
    is_driver = (ops["level"] == "runtime").to_numpy(bool) & ~np.append(step.is_op, False)[step.parent]
    rows = np.flatnonzero((step.is_outer | is_driver) & (step.thread == 0))
    start = step.start_us[rows]
    gap_us = start - np.append(0.0, (start + step.total_us[rows])[:-1])
    chosen = (gap_us >= LONG_GAP_US) & step.is_op[rows] & step.in_phase("forward", "other")[rows]
    if len(rows) < 2 or (step.thread != 0).any() or not chosen.any():
        return np.empty(0, np.int64), np.empty(0)
    names = ops["op"].where(ops["level"] == "range")
    aside = [name for name in names.dropna().unique() if LOADER.fullmatch(name) or "ompile" in name]
    inside = step.below(np.flatnonzero(names.isin(aside).to_numpy(bool)))
    chosen &= ~inside[rows]
    # The first op after such a block, or after a backward pass, is late for that block's sake.
    chosen &= ~np.append(False, inside[rows][:-1] | step.in_phase("backward", "optimizer")[rows][:-1])
    return rows[chosen], gap_us[chosen]
