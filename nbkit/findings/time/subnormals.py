"""Finds optimizers whose state holds subnormal numbers, with which a CPU takes many times as long."""

from collections.abc import Iterator

import numpy as np

from nbkit.findings.finding import Finding, rule
from nbkit.findings.time.optimizer import LEAST_SHARE, STEP
from nbkit.findings.time.step import TimedStep

ADVICE = (
    "Scale the loss up, or its gradients, until the state is in the range of its dtype. torch.set_flush_denormal(True) "
    "makes such numbers 0 on the CPU; foreach=True stays slow."
)


@rule("hint", rank=125)
def subnormal_state(step: TimedStep) -> Iterator[Finding]:
    """1 % or more of the elements of an optimizer's state are subnormal numbers, and the op that takes most of its
    step, and 10 % of the whole, takes twice as long or more on them on this CPU.
    """
    for name in step.ops.loc[step.ops["level"] == "api", "op"].dropna().unique():
        if not (match := STEP.fullmatch(name)):
            continue
        inside = np.flatnonzero(step.below(np.flatnonzero(step.names == name)) & step.is_outer)
        if not len(inside):  # no parameter had a gradient
            continue
        slowest = int(np.bincount(step.codes[inside], weights=step.total_us[inside], minlength=1).argmax())
        rows = inside[step.codes[inside] == slowest]
        op = step.names[rows[0]].rpartition(".")[0]
        time_us = float(step.total_us[rows].sum())
        if not step.is_much(time_us, LEAST_SHARE) or step.look is None or (found := step.look(match[1], op)) is None:
            continue
        message = (
            f"{found.fraction:.0%} of the elements of {match[1]}'s {found.name} are subnormal numbers, below "
            f"{found.below:.3g}: run on them, {op} takes {found.slowdown:.0f} times as long as on others; its calls in "
            f"the optimizer take {step.share(time_us)}"
        )
        effect_us = time_us * (1 - 1 / found.slowdown)
        finding = subnormal_state.finding(message, ADVICE, evidence=found._asdict(), effect_us=effect_us)
        yield step.finding(finding, rows)
