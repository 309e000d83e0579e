"""Finds optimizers that update one parameter at a time, or go over all of them in several passes."""

import re
from collections.abc import Iterator

import numpy as np

from nbkit.findings.finding import Finding, rule
from nbkit.findings.time.cases import OptimizerCase, Place, saving
from nbkit.findings.time.step import Flags, TimedStep

STEP = re.compile(r"torch\.optim\.(\w+)\.step")
# Those of torch that can update all parameters at once.
FUSED = ("SGD", "Adam", "AdamW", "Adagrad")
FOREACH = (*FUSED, "NAdam", "RAdam", "RMSprop", "Adadelta", "Adamax", "ASGD", "Rprop")
MANY_OPS = 200
LEAST_SHARE = 0.1
# From here on several passes over few large parameters are worth a word.
LARGE_SHARE = 0.3
GROUPED = re.compile(r"_(foreach|fused|amp_foreach)_\w+")


@rule("hint", rank=120)
def optimizer(step: TimedStep) -> Iterator[Finding]:
    """An optimizer of torch runs 200 ops or more in a step, none of them on a list of parameters, and takes 10 % of the
    step; or one that can be fused and is not takes 30 %.
    """
    called = step.ops.loc[step.ops["level"] == "api", "op"].dropna().unique()
    names = [name for name in called if (match := STEP.fullmatch(name)) and match[1] in FOREACH]
    grouped = [name for name in step.kinds if GROUPED.match(name)] if names else []
    is_grouped = step.named(*grouped)
    for name in names:
        kind = name.split(".")[-2]
        rows = np.flatnonzero(step.names == name)
        inside = step.below(rows)
        ops, time_us = int((step.is_outer & inside).sum()), float(step.total_us[rows].sum())
        is_loop = not (is_grouped & inside).any()
        many = is_loop and ops / len(rows) >= MANY_OPS
        passes = kind in FUSED and ops > len(rows) and not any("_fused_" in name for name in _names(step, inside))
        if not (many or passes) or not step.is_much(time_us, LEAST_SHARE if many else LARGE_SHARE):
            continue
        gain = saving(step.measure, [(_case(step, kind, inside, len(rows)), time_us)])
        if (saved := step.saved(gain, time_us)) is None:
            continue
        steps = "1 step" if len(rows) == 1 else f"{len(rows):,} steps"
        does = "updates one parameter at a time" if is_loop else "goes over its parameters in several passes"
        message = f"{kind} {does}: {ops:,} ops in {steps}, {step.share(time_us)}{saved}"
        how = "fused=True): one call updates" if kind in FUSED else "foreach=True): one call of each kind updates"
        advice = f"Use {kind}(..., {how} many parameters."
        yield step.finding(optimizer.finding(message, advice, effect_us=time_us), rows)


def _names(step: TimedStep, inside: Flags) -> set[str]:
    return {step.kinds[code] for code in np.unique(step.codes[inside & step.is_outer])}


def _case(step: TimedStep, kind: str, inside: Flags, steps: int) -> OptimizerCase | None:
    """Returns the shapes of the parameters that one step updates; null where they are not known."""
    if kind not in FUSED:
        return None
    updates = np.flatnonzero(step.named("add_" if kind == "SGD" else "addcdiv_") & inside & step.is_outer)
    known = [inputs for row in updates.tolist() if (inputs := step.inputs(row)) is not None]
    # SGD takes a multiple of the gradient away; what it adds to is its momentum.
    known = [inputs for inputs in known if kind != "SGD" or float(str(inputs.arguments.get("alpha", 1))) < 0]
    if len(known) < steps or (dtype := known[0].dtypes[0]) is None:
        return None
    shapes = tuple(inputs.shapes[0] for inputs in known[: len(known) // steps])
    return OptimizerCase(kind, shapes, Place(dtype, known[0].device, True))
