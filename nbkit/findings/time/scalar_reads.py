"""Finds values that are read one by one, where one read of a whole tensor would do."""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from nbkit.findings.finding import Finding, rule
from nbkit.findings.time.step import LEAST_FRACTION, Floats, TimedStep

# Python between two ops of a line takes some microseconds; a longer pause has another cause.
MOST_GAP_US = 50.0
# Reads of one line per pass of the model. A training step reads its loss, a norm, a few metrics.
MOST_READS = 32
MANY_READS = 256
ADVICE = "Keep the values in a tensor and read them once: losses.tolist(), or total += losses.detach().sum()."


@rule("hint", rank=40)
def scalar_reads(step: TimedStep) -> Iterator[Finding]:
    """A line reads 32 values or more per pass of the model (`item`), and that takes 5 % of the step, or a device is
    recorded.
    """
    # A bool(tensor) reads through aten.is_nonzero.
    rows = np.flatnonzero(step.named("item", "is_nonzero") & step.is_outer & ~step.in_phase("optimizer"))
    if len(rows) < MOST_READS:
        return
    between = _python_around(step)
    has_device = bool((step.ops["level"] == "kernel").any())
    for mine in step.lines(rows):
        reads, time_us = len(mine), float(step.total_us[mine].sum() + between[mine].sum())
        per_pass = reads / step.passes
        is_much = step.is_much(time_us) or (per_pass >= MANY_READS and time_us >= LEAST_FRACTION * step.whole_us)
        if per_pass < MOST_READS or not (has_device or is_much):
            continue
        waits = "each waits for the device" if has_device else "on an accelerator each waits for the device"
        message = f"{reads:,} values are read one by one, which takes {step.share(time_us)} with Python around; {waits}"
        finding = scalar_reads.finding(message, ADVICE, effect_us=time_us)
        yield step.finding(finding, mine)


def _python_around(step: TimedStep) -> Floats:
    """Returns the time of Python before and after each outer op, as far as ops of the same line are on both sides."""
    result = np.zeros(len(step.ops))
    rows = step.main_ops
    line = pd.factorize(step.ops["source"].iloc[rows])[0]
    start = step.start_us[rows]
    gap = start[1:] - (start + step.total_us[rows])[:-1]
    gap = np.where((line[1:] == line[:-1]) & (gap <= MOST_GAP_US), np.maximum(gap, 0.0), 0.0)
    result[rows[1:]] += gap
    result[rows[:-1]] += gap
    return result
