"""Finds copies of tensors to other dtypes, layouts and devices that take much of the step."""

from collections.abc import Iterator

import numpy as np

from nbkit.findings.finding import Finding, Rule, rule
from nbkit.findings.time.step import Flags, TimedStep

LEAST_SHARE = 0.05
FEWEST = 4
CAST_ONCE = (
    "Cast once, outside of the step: model.to(dtype) for weights, torch.autocast for ops; load data in the model's "
    "dtype."
)
ONE_LAYOUT = (
    "Keep one layout: without contiguous(), with ops that take strides, or with channels_last in all of the model."
)


@rule("hint", rank=50)
def casts(step: TimedStep) -> Iterator[Finding]:
    """A line casts 4 tensors or more to another dtype, and that takes 5 % of the step with its backward pass; not what
    autocast casts.
    """
    # The overload tells what is asked for: torch 2.6 does not tell it.
    is_cast = step.named("to") & step.ops["op"].isin(["aten.to.dtype", "aten.to.dtype_layout"]).to_numpy(bool)
    return _by_line(step, casts, np.asarray(is_cast), "casts to another dtype", CAST_ONCE)


@rule("hint", rank=60)
def layout_copies(step: TimedStep) -> Iterator[Finding]:
    """A line copies 4 tensors or more into another memory layout, and that takes 5 % of the step with its backward
    pass: `contiguous()`, `clone()`, `reshape()` that copies.
    """
    chosen = step.named("contiguous", "reshape", "clone")
    return _by_line(step, layout_copies, chosen, "copies into another memory layout", ONE_LAYOUT)


def _by_line(step: TimedStep, of: Rule, chosen: Flags, what: str, advice: str) -> Iterator[Finding]:
    # to() and contiguous() copy only where there is something to change.
    is_copy = step.holding(step.named("copy_"))
    rows = np.flatnonzero(chosen & is_copy & step.is_outer & step.in_phase("forward"))
    for _, mine in step.ops[["source"]].iloc[rows].groupby("source", dropna=False, sort=False):
        at = mine.index.to_numpy(np.int64)
        forward_us = float(step.total_us[at].sum())
        backward_us = step.backward_us(step.below(at))
        if len(at) < FEWEST or not step.is_much(forward_us + backward_us, LEAST_SHARE):
            continue
        also = ", with their backward pass" if backward_us else ""
        message = f"{len(at):,} {what} take {step.share(forward_us + backward_us)}{also}"
        finding = of.finding(message, advice, effect_us=forward_us + backward_us)
        yield step.finding(finding, at)
