"""Finds loops over lines of code that run thousands of ops, each so short that its launch is what takes the time."""

from dataclasses import replace

import numpy as np
import pandas as pd

from nbkit import units
from nbkit.findings.finding import Finding
from nbkit.findings.time.python_loop import LEAST_SHARE, MANY_CALLS, module_around
from nbkit.findings.time.step import BACKWARD_CALLS, Flags, Ints, TimedStep

MANY_OPS = 1_000
SHORT_US = 10.0
# A file or cell, and the number of a line in it.
LINE = r"^(?P<file>.+?)(?::|, line )(?P<line>\d+)$"
ADVICE = (
    "Each op costs its launch, not its arithmetic: compute all turns in one call where one does not need the result of "
    "another; for a recurrence use nn.LSTM, nn.GRU, a cumulative sum or a scan, or torch.compile."
)


def line_loops(step: TimedStep) -> list[Finding]:
    """Returns a finding for each class of modules whose calls loop over lines of a file with many short ops.

    Ops of the backward pass count where the forward op stands whose gradient they compute.
    """
    rows = step.main_ops[step.in_phase("forward")[step.main_ops]]
    places = step.ops["source"].iloc[rows].str.extract(LINE)
    places = places.assign(row=rows, op=step.codes[rows], around=module_around(step)[rows]).dropna()
    lines = places.groupby(["around", "file", "line"], sort=False)
    # A line is gone through as often as its first op runs.
    turns = (lines["op"].transform("first") == places["op"]).groupby(lines.ngroup()).transform("sum")
    looped = places[turns >= MANY_CALLS]
    # Layers of one class have one loop.
    looped = looped.assign(kind=np.append(step.names, "")[looped["around"]])
    loops = [loop for _, loop in looped.groupby(["kind", "file"], sort=False)]
    return [finding for loop in loops if (finding := _finding(step, loop)) is not None]


def _finding(step: TimedStep, loop: pd.DataFrame) -> Finding | None:
    """Returns the finding of the lines of one loop, if their ops are many, short and much of the step."""
    rows: Ints = loop["row"].to_numpy(np.int64)
    inside = np.zeros(len(step.ops), dtype=bool)
    inside[rows] = True
    inside = step.below(np.flatnonzero(inside))
    forward_of = step.ops["forward_op_id"].to_numpy(np.int64, na_value=-1)
    is_backward = np.append(inside, False)[forward_of] & step.in_phase("backward")
    backward = np.flatnonzero(step.is_outer & is_backward)
    ops = np.concatenate([rows, backward])
    usual_us = float(np.median(step.total_us[ops]))
    time_us = _spent(step, rows) + step.backward_us(inside) + _between_nodes(step, is_backward)
    if len(ops) < MANY_OPS or usual_us > SHORT_US or not step.is_much(time_us, LEAST_SHARE):
        return None
    numbers = loop["line"].astype(int)
    file_line = f"{step.ops['source'].iloc[rows[numbers.argmin()]]}"
    until = f" to {numbers.max()}" if numbers.max() > numbers.min() else ""
    with_backward = ", with its backward pass" if len(backward) else ""
    message = (
        f"the loop at {file_line}{until} runs {len(ops):,} ops of about {units.duration(usual_us)}, and takes "
        f"{step.share(time_us)}{with_backward}: it is bound by launches"
    )
    finding = step.finding(Finding("op_loop", "hint", message, ADVICE, effect_us=time_us), rows)
    return replace(finding, op=None, source=file_line, source_text=step.texts.get(file_line))


def _between_nodes(step: TimedStep, is_backward: Flags) -> float:
    """Returns the part of autograd's own time, from node to node of a backward pass, that is before these nodes."""
    passes = step.ops["op"].isin(BACKWARD_CALLS).to_numpy(bool)
    nodes = np.flatnonzero(np.append(passes, False)[step.parent] & (step.thread == step.thread[step.parent]))
    own_us = step.ops["self_time_us"].to_numpy(np.float64)
    count = np.bincount(step.parent[nodes], minlength=len(own_us))
    return float((own_us / np.maximum(count, 1))[step.parent[nodes[is_backward[nodes]]]].sum())


def _spent(step: TimedStep, rows: Ints) -> float:
    """Returns the time of these ops, and of the Python code between one of them and the next."""
    begin = np.append(step.start_us[step.main_ops], np.inf)
    place = np.searchsorted(step.main_ops, rows)
    is_followed = np.isin(np.append(step.main_ops, -1)[place + 1], rows)
    until = np.where(is_followed, begin[place + 1], step.start_us[rows] + step.total_us[rows])
    return float((until - step.start_us[rows]).sum())
