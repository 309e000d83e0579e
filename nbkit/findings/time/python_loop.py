"""Finds modules that a Python loop calls many times in one forward pass."""

from dataclasses import replace

import numpy as np

from nbkit.findings.finding import Finding
from nbkit.findings.time.step import Ints, TimedStep

MANY_CALLS = 64
SHORT_US = 2_000.0
LEAST_SHARE = 0.2
ADVICE = (
    "Compute all of them in one call where one does not need the result of another: stack the inputs; for a recurrence "
    "use nn.LSTM or nn.GRU, a scan, or torch.compile."
)


def module_loops(step: TimedStep) -> list[Finding]:
    """Returns a finding for each module that is called many times within one call of the module around it."""
    findings: list[Finding] = []
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
            findings.append(_finding(step, module, parts, time_us))
    return findings


def _finding(step: TimedStep, module: str, parts: list[Ints], time_us: float) -> Finding:
    at = np.concatenate(parts)
    calls = f"{len(parts[0]):,} times in one forward pass"
    backward = ", with its backward pass" if step.in_phase("backward").any() else ""
    message = f"module {module} is called {calls}, and takes {step.share(time_us)}{backward}"
    finding = step.finding(Finding("python_loop", "hint", message, ADVICE, effect_us=time_us), at)
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
