"""Finds time of the step that is no op's: loading of data, and other code before a line's ops."""

import re
from dataclasses import replace

import numpy as np

from nbkit import units
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
# A step of which so much passes without an op is not told by its ops; a machine with other work pauses for less.
LEAST_SILENCE, LONG_SILENCE_US = 0.5, 20_000.0
OTHER_CODE = "Profile that code by itself; compute on whole batches, or outside the step."
SILENT = f"{OTHER_CODE} Of a single run it may be a pause of a machine with other work: repeats=5 tells."


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


def silence(step: TimedStep) -> list[Finding]:
    """Returns a finding where half of the step and more passes without an op in one module, or outside of all."""
    start, gap_us, after = _silences(step)
    if not len(start) or python_code(step):
        return []
    owners = np.array([_around(step, middle) for middle in start + gap_us / 2], dtype=np.int64)
    time_us = {int(row): float(gap_us[owners == row].sum()) for row in np.unique(owners)}
    row = max(time_us, key=lambda one: time_us[one])
    if not step.is_much(time_us[row], LEAST_SILENCE):
        return []
    times = f"{units.duration(time_us[row])} of {units.duration(step.whole_us)} of the step"
    is_module = step.ops["level"].iloc[row] == "module"
    longest = int(after[owners == row][gap_us[owners == row].argmax()])
    where = f"{step.names[row]}.forward()" if is_module else _before(step, longest)
    message = f"{step.share(time_us[row]) if step.is_slowed else times} no op ran: {where}"
    finding = step.finding(Finding("no_op_ran", "hint", message, SILENT, effect_us=time_us[row]), [row])
    if not is_module:
        return [finding]
    line = step.forwards.get((str(step.ops["model"].iloc[row]), str(step.ops["module"].iloc[row])), (None, None))
    return [replace(finding, source=line[0], source_text=line[1])]


def _before(step: TimedStep, row: int) -> str:
    if row < 0:
        return "after the last op"
    source = step.ops["source"].iloc[row]
    return f"outside of modules, before {step.names[row]}{f' at {source}' if isinstance(source, str) else ''}"


def _silences(step: TimedStep) -> tuple[Floats, Floats, Ints]:
    """Returns where nothing ran in any thread for long: start, length, and the row that comes next, -1 at the end.

    Modules, the step, blocks of the user's and nodes of autograd hold code between ops; all else runs.
    """
    ops, main = step.ops, step.thread == 0
    names = ops["op"].astype(str)
    aside = names.str.fullmatch(LOADER) | names.str.contains("ompile|torch.distributed|^gloo:", regex=True)
    holds = ops["level"].isin(["module", "range", "api"]).to_numpy(bool) & main & ~aside.to_numpy(bool)
    rows = np.flatnonzero(~holds & ~(ops["level"] == "kernel").to_numpy(bool))
    rows = rows[np.argsort(step.start_us[rows], kind="stable")]
    ends = np.maximum.accumulate(np.append(step.start_us[0], step.start_us[rows] + step.total_us[rows]))
    gap_us = np.append(step.start_us[rows], step.start_us[0] + step.whole_us) - ends
    chosen = gap_us >= LONG_SILENCE_US
    return ends[chosen], gap_us[chosen], np.append(rows, -1)[chosen]


def _around(step: TimedStep, time_us: float) -> int:
    """Returns the innermost module call of the main thread at a time, the step where there is none."""
    is_module = (step.ops["level"] == "module").to_numpy(bool) & (step.thread == 0)
    inside = is_module & (step.start_us <= time_us) & (time_us <= step.start_us + step.total_us)
    return int(np.flatnonzero(inside)[-1]) if inside.any() else 0
