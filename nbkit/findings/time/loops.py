"""Finds Python loops: modules that are called many times in one forward pass, lines that run thousands of short ops."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pandas as pd

from nbkit import units
from nbkit.findings.finding import Finding, rule
from nbkit.findings.time.step import BACKWARD_CALLS, Flags, Ints, TimedStep

MANY_CALLS = 64
SHORT_US = 2_000.0
LEAST_SHARE = 0.2
ALL_AT_ONCE = (
    "Compute all of them in one call where one does not need the result of another: stack the inputs; for a recurrence "
    "use nn.LSTM or nn.GRU, a scan, or torch.compile."
)


@rule("hint", rank=100)
def python_loop(step: TimedStep) -> Iterator[Finding]:
    """A module is called 64 times or more in one call of the module around it, for 2 ms or less each, and that
    takes 20 % of the step.
    """
    rows = np.flatnonzero((step.ops["level"] == "module").to_numpy(bool) & step.in_phase("forward"))
    around = module_around(step)
    keys = step.ops[["model", "module"]].iloc[rows].assign(around=around[rows])
    looped = []
    for index in keys[keys["around"] >= 0].groupby(["model", "module", "around"], sort=False).groups.values():
        mine = np.asarray(index, np.int64)  # the index of ops is op_id
        if len(mine) >= MANY_CALLS:
            model, module = (str(step.ops[name].iloc[mine[0]]) for name in ("model", "module"))
            looped.append((model, module, mine))
    inside = np.zeros(len(step.ops), dtype=bool)
    by_module: dict[tuple[str, str], list[Ints]] = {}
    for model, module, mine in looped:
        if not inside[mine].any():  # a module inside of one that is looped over is part of that
            inside |= step.below(mine)
            by_module.setdefault((model, module), []).append(mine)
    for (_, module), parts in by_module.items():
        at = np.concatenate(parts)
        forward_us = float(step.total_us[at].sum())
        time_us = forward_us + step.backward_us(step.below(at))
        if forward_us / len(at) <= SHORT_US and step.is_much(time_us, LEAST_SHARE):
            yield _of_module(step, module, parts, time_us)


def _of_module(step: TimedStep, module: str, parts: list[Ints], time_us: float) -> Finding:
    at = np.concatenate(parts)
    calls = f"{len(parts[0]):,} times in one forward pass"
    backward = ", with its backward pass" if step.in_phase("backward").any() else ""
    message = f"module {module} is called {calls}, and takes {step.share(time_us)}{backward}"
    finding = step.finding(python_loop.finding(message, ALL_AT_ONCE, effect_us=time_us), at)
    # A module call has no line of its own; its first op has.
    inside = np.flatnonzero(step.is_outer & step.below(at[:1]))
    source = step.ops["source"].iloc[inside[0]] if len(inside) else None
    if not isinstance(source, str):
        return finding
    return replace(finding, source=source, source_text=step.texts.get(source))


def module_around(step: TimedStep) -> Ints:
    """Returns the row of the module call around each row, -1 where there is none."""
    is_module = np.append((step.ops["level"] == "module").to_numpy(bool), True)  # the last stands for "none"
    above = step.parent.copy()
    while not is_module[above].all():
        above = np.where(is_module[above], above, step.parent[above])
    return above


MANY_OPS = 1_000
SHORT_OP_US = 10.0
# A file or cell, and the number of a line in it.
LINE = r"^(?P<file>.+?)(?::|, line )(?P<line>\d+)$"
LAUNCHES = (
    "Each op costs its launch, not its arithmetic: compute all turns in one call where one does not need the result of "
    "another; for a recurrence use nn.LSTM, nn.GRU, a cumulative sum or a scan, or torch.compile."
)


@rule("hint", rank=110)
def op_loop(step: TimedStep) -> list[Finding]:
    """Lines of a file run 1,000 ops or more, backward counted, of 10 µs at the median, each line 64 times or more in
    one call of the module around; 20 % of the step.

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
    return [finding for loop in loops if (finding := _of_lines(step, loop)) is not None]


def _of_lines(step: TimedStep, loop: pd.DataFrame) -> Finding | None:
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
    if len(ops) < MANY_OPS or usual_us > SHORT_OP_US or not step.is_much(time_us, LEAST_SHARE):
        return None
    numbers = loop["line"].astype(int)
    file_line = f"{step.ops['source'].iloc[rows[numbers.argmin()]]}"
    until = f" to {numbers.max()}" if numbers.max() > numbers.min() else ""
    with_backward = ", with its backward pass" if len(backward) else ""
    message = (
        f"the loop at {file_line}{until} runs {len(ops):,} ops of about {units.duration(usual_us)}, and takes "
        f"{step.share(time_us)}{with_backward}: it is bound by launches"
    )
    finding = step.finding(op_loop.finding(message, LAUNCHES, effect_us=time_us), rows)
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
