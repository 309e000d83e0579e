"""Finds cross entropies that are written by hand: log of a softmax, or a product with one-hot targets."""

from math import prod

import numpy as np

from nbkit.findings.finding import Finding, rule
from nbkit.findings.time.cases import LossCase, Place, saving
from nbkit.findings.time.step import Ints, TimedStep
from nbkit.ops.families import LOG_SOFTMAX, SOFTMAX, family

LOG, ONE_HOT = "log", "one_hot"
PRODUCT, PICKS, SUMS = "mul", ("gather", "index"), ("sum", "mean")
# What else stands between the softmax and the sum.
BESIDE = family("RESHAPES PARTS IDENTITIES ADDS CLAMPS neg arange")
MOST_OPS = 12
ADVICE = (
    "Use torch.nn.functional.cross_entropy, which takes logits and class numbers: it writes fewer tensors, and does "
    "not lose what a softmax rounds to 0."
)


@rule("hint", rank=90)
def loss(step: TimedStep) -> list[Finding]:
    """A cross entropy is made of a softmax and a log, `gather` or one-hot targets, and a sum, and `savings=True`
    measured that `cross_entropy` saves 5 % of the step.
    """
    if step.measure is None:
        return []
    rows = step.main_ops[step.in_phase("forward", "other")[step.main_ops]]
    found = [
        run for at in np.flatnonzero(step.named(*SOFTMAX, *LOG_SOFTMAX)[rows]) if len(run := _run(step, rows, int(at)))
    ]
    if not found:
        return []
    ops = np.concatenate(found)
    time_us = float(step.total_us[ops].sum()) + step.backward_us(step.below(ops))
    if not step.is_much(time_us):
        return []
    gain = saving(step.measure, [(_case(step, run), float(step.total_us[run].sum())) for run in found])
    if not (saved := step.saved(gain, time_us)):
        return []
    losses = "1 cross entropy is" if len(found) == 1 else f"{len(found):,} cross entropies are"
    takes = "takes" if len(found) == 1 else "take"
    backward = ", with the backward pass" if step.has_backward else ""
    message = f"{losses} made of single ops and {takes} {step.share(time_us)}{backward}{saved}"
    finding = loss.finding(message, ADVICE, effect_us=time_us, evidence={"ops": len(ops)})
    return [step.finding(finding, [int(run[0]) for run in found])]


def _run(step: TimedStep, rows: Ints, at: int) -> Ints:
    """Returns the ops from a softmax to the sum of its loss; none where it picks nothing, or does other work."""
    names = [step.kinds[code] for code in step.codes[rows[at : at + MOST_OPS]]]
    before = [step.kinds[code] for code in step.codes[rows[max(at - MOST_OPS, 0) : at]]]
    end = next((place for place, name in enumerate(names) if name in SUMS), 0)
    inside = names[1 : end + 1]
    # Without one-hot numbers a product has soft targets, or weights, as those of a policy.
    picks = (PRODUCT,) if ONE_HOT in (*before, *inside) else PICKS
    is_log = names[0] in LOG_SOFTMAX or LOG in inside
    is_loss = is_log and not {*picks}.isdisjoint(inside) and {*BESIDE, *SUMS, *picks, ONE_HOT, LOG}.issuperset(inside)
    return rows[at : at + end + 1] if end and is_loss else rows[:0]


def _case(step: TimedStep, run: Ints) -> LossCase | None:
    """Returns the sizes of one loss; null where they are not known."""
    inputs = step.inputs(run[0])
    if inputs is None or inputs.dtypes[0] is None or not inputs.shapes[0]:
        return None
    shape, dim = inputs.shapes[0], inputs.arguments.get("dim", -1)
    classes = shape[dim] if isinstance(dim, int) and -len(shape) <= dim < len(shape) else 0
    if not classes:
        return None
    names = {step.kinds[code] for code in step.codes[run]}
    place = Place(inputs.dtypes[0], inputs.device, step.has_backward)
    return LossCase(prod(shape) // classes, classes, LOG in names, PRODUCT in names, place)
