"""Finds copies of tensors to other dtypes, layouts and devices that take much of the step."""

import numpy as np

from nbkit.findings.finding import Finding
from nbkit.findings.time.step import Flags, Ints, TimedStep

LEAST_SHARE = 0.05
FEWEST = 4
KINDS = {
    "casts": (
        "casts to another dtype",
        "Cast once, outside of the step: model.to(dtype) for weights, torch.autocast for ops; load data in the model's "
        "dtype.",
    ),
    "layout_copies": (
        "copies into another memory layout",
        "Keep one layout: without contiguous(), with ops that take strides, or with channels_last in all of the model.",
    ),
}


def copies(step: TimedStep) -> list[Finding]:
    """Returns findings of casts, and of copies to another layout, that lines ask for and that take much time.

    Casts of torch.autocast happen inside of ops; no line asks for them.
    """
    # to() and contiguous() copy only where there is something to change.
    is_copy = step.holding(step.named("copy_"))
    findings = []
    for rule, chosen in (("casts", _casts(step)), ("layout_copies", _layouts(step))):
        rows = np.flatnonzero(chosen & is_copy & step.is_outer & step.in_phase("forward"))
        findings += _by_line(step, rule, rows)
    return findings


def _casts(step: TimedStep) -> Flags:
    # The overload tells what is asked for: torch 2.6 does not tell it.
    return np.asarray(step.named("to") & step.ops["op"].isin(["aten.to.dtype", "aten.to.dtype_layout"]).to_numpy(bool))


def _layouts(step: TimedStep) -> Flags:
    return step.named("contiguous", "reshape", "clone")


def _by_line(step: TimedStep, rule: str, rows: Ints) -> list[Finding]:
    findings = []
    what, advice = KINDS[rule]
    for _, mine in step.ops[["source"]].iloc[rows].groupby("source", dropna=False, sort=False):
        at = mine.index.to_numpy(np.int64)
        forward_us = float(step.total_us[at].sum())
        backward_us = step.backward_us(step.below(at))
        if len(at) < FEWEST or not step.is_much(forward_us + backward_us, LEAST_SHARE):
            continue
        also = ", with their backward pass" if backward_us else ""
        message = f"{len(at):,} {what} take {step.share(forward_us + backward_us)}{also}"
        finding = Finding(rule, "hint", message, advice, effect_us=forward_us + backward_us)
        findings.append(step.finding(finding, at))
    return findings
