"""Finds time of the step that is no op's: loading of data, other code before a line's ops, anomaly detection."""

import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from nbkit import units
from nbkit.findings.finding import Finding, rule
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


@rule("hint", rank=10)
def data_loading(step: TimedStep) -> Iterator[Finding]:
    """A DataLoader takes 20 % of the step or more."""
    names = step.ops["op"].where(step.ops["level"] == "range")
    for name in [name for name in names.dropna().unique() if LOADER.fullmatch(name)]:
        rows = np.flatnonzero((names == name).to_numpy(bool))
        time_us = float(step.total_us[rows].sum())
        if step.is_much(time_us, LEAST_LOADING):
            calls = "1 call" if len(rows) == 1 else f"{len(rows):,} calls"
            message = f"{step.share(time_us)} passes in loading data, {calls} of {name}"
            finding = data_loading.finding(message, LOAD_EARLIER, effect_us=time_us)
            yield step.finding(finding, rows)


@rule("hint", rank=20)
def python_code(step: TimedStep) -> Iterator[Finding]:
    """25 % of the step or more passes before ops of one line, in pauses of 0.3 ms or more, 4 times or more; no other
    thread works.
    """
    rows, gaps_us = _long_gaps(step)
    gap_of = dict(zip(rows.tolist(), gaps_us.tolist(), strict=True))
    for mine in step.lines(rows):
        time_us = sum(gap_of[row] for row in mine.tolist())
        has_line = isinstance(step.ops["source"].iloc[mine[0]], str)
        if len(mine) < FEWEST_GAPS or not has_line or not step.is_much(time_us, LEAST_PYTHON):
            continue
        message = f"{step.share(time_us)} passes outside of ops, just before this line runs one, {len(mine):,} times"
        yield step.finding(python_code.finding(message, OTHER_CODE, effect_us=time_us), mine)


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


@rule("hint", rank=30)
def no_op_ran(step: TimedStep) -> list[Finding]:
    """50 % of the step or more passes in one module, or outside of all, while nothing runs in any thread, in pauses of
    20 ms or more.
    """
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
    finding = step.finding(no_op_ran.finding(message, SILENT, effect_us=time_us[row]), [row])
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


# Of autograd's engine: nobody else calls _is_any_true right in one of its nodes.
NODE = "autograd::engine::evaluate_function"
CHECKS = ("isnan", "_is_any_true", "item")
SWITCH_OFF = (
    "Switch it off: torch.autograd.set_detect_anomaly(False), or take its `with` block away. To find a NaN, "
    "opcheck names the op where it begins."
)


@rule("warning", rank=130)
def anomaly_mode(step: TimedStep) -> list[Finding]:
    """Autograd looks for NaN in what its nodes give: `torch.autograd.set_detect_anomaly` is on."""
    in_nodes = np.array([str(name).startswith(NODE) for name in np.append(step.names, "")])[step.parent]
    asked = np.flatnonzero(step.named("_is_any_true") & in_nodes)
    if not len(asked):
        return []
    time_us = float(step.total_us[step.named(*CHECKS) & in_nodes].sum())
    message = (
        "Anomaly detection is on: torch keeps the Python stack of each forward op, whose time that makes longer, and "
        f"looks for NaN in {len(asked):,} gradients, which takes {step.share(time_us)}"
    )
    return [step.finding(anomaly_mode.finding(message, SWITCH_OFF, effect_us=time_us), asked)]
