"""Finds passes of one step whose means are over numbers of targets that differ: each target counts for its pass."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from nbkit.findings.finding import Finding, at_ops, rule
from nbkit.findings.training.facts import Audit, Pass, Targets
from nbkit.findings.training.over_steps.accumulation import MEAN, loss_of
from nbkit.ops.families import DIVIDES, FORMS, MULTIPLIES

# So many times as many targets count in the largest pass of a step as in the smallest.
LEAST_RATIO = 1.2
ADVICE = (
    "Let each pass sum (reduction='sum'), and divide by the number of targets that count in the whole step. Nothing, "
    "if each micro-batch, or each sequence, is to count the same however long it is."
)


class Mean(NamedTuple):
    """Describes the mean over `targets` that a backward pass begins at, with the op and the lines that gave it.

    `factors` are what it was multiplied or divided by.
    """

    op_id: int
    sources: tuple[object, ...]
    factors: tuple[object, ...]
    targets: Targets


@rule("hint", rank=304)
def unequal_means(audit: Audit) -> Iterator[Finding]:
    """Backward passes of one step begin at means over their own tokens, weighed alike, and in one of them 1.2 times as
    many tokens count as in another, or more; ignore_index leaves out the others.
    """
    ended = [one for one in audit.passes if one.step < audit.steps]
    if len(audit.optimizers) != 1 or any(one.is_cleared for one in ended):
        return
    steps = [[one for one in ended if one.step == step] for step in dict.fromkeys(one.step for one in ended)]
    met = [means for passes in steps if len(passes) > 1 for means in [_means(audit, passes)]]
    unequal = [means for means in met if _ratio(means) > LEAST_RATIO]
    if not unequal or 2 * len(unequal) < len(met):
        return
    means = max(unequal, key=_ratio)
    counts = [one.targets.total - one.targets.ignored for one in means]
    finding = unequal_means.finding(
        f"{len(means)} backward passes add up to a step of {audit.optimizers[0]}, weighed alike, and each begins at a "
        f"mean over its own tokens, {min(counts):,} to {max(counts):,} of them: a token counts "
        f"{_ratio(means):.3g} times as much in one pass as in another",
        ADVICE,
        evidence={"tokens": counts, "ratio": _ratio(means)},
    )
    yield at_ops(finding, audit.ops, [one.op_id for one in means], audit.texts)


def _means(audit: Audit, passes: Sequence[Pass]) -> list[Mean]:
    """Returns the mean of each pass of a step; none where one has none, or where they are not alike."""
    means = [one for of in passes for one in _mean(audit, of)]
    is_alike = len(means) == len(passes) and len({(one.sources, one.factors) for one in means}) == 1
    return means if is_alike and any(one.targets.ignored for one in means) else []


def _mean(audit: Audit, of: Pass) -> Iterator[Mean]:
    """Yields the mean over targets that a pass begins at, which may be multiplied or divided."""
    flow, factors = audit.flow, list[object]()
    began = loss_of(audit, of.ops)
    if began is None:
        return
    op = flow.ops.get(began)
    while op is not None and op.name in MULTIPLIES | DIVIDES | FORMS:
        needing = [one for one in op.inputs if audit.step.requires_grad[one.row]]
        if len(needing) != 1:
            return
        factors += [op.name, str(op.arguments), *(one.tensor_id for one in op.inputs if one != needing[0])]
        op = flow.maker(needing[0])
    # Of images (nll_loss2d) each pixel is no sample of its own, and class weights weigh by themselves.
    if op is None or op.name != "nll_loss_forward" or op.arguments.get("reduction", MEAN) != MEAN or len(op.inputs) > 2:
        return
    sources = tuple(audit.ops["source"].iloc[[began, op.op_id]])
    for targets in audit.targets:
        if targets.op_id == audit.ops["parent_id"].iloc[op.op_id] and targets.ignored < targets.total:
            yield Mean(began, sources, tuple(factors), targets)


def _ratio(means: Sequence[Mean]) -> float:
    counts = [one.targets.total - one.targets.ignored for one in means]
    return max(counts) / min(counts) if counts else 1.0
