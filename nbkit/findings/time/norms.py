"""Finds norms that are written by hand: a mean, a root, a product, where one fused op would do."""

from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from nbkit.findings.finding import Finding, rule
from nbkit.findings.time.cases import NormCase, Place, saving
from nbkit.findings.time.step import LEAST_FRACTION, Ints, TimedStep
from nbkit.ops.families import DIVIDES, MEANS, MULTIPLIES, SUBTRACTS, family

ROOTS = family("ROOTS std")
SCALES = MULTIPLIES | DIVIDES
# What else stands in a norm: its square, eps, shift, casts and views.
BESIDE = family("RESHAPES EXPANDS IDENTITIES ADDS POWERS CLAMPS reciprocal")
MOST_OPS, FEWEST = 16, 2
# By whether the mean is taken away.
NAMES = {True: "a layer norm", False: "an RMS norm"}
ADVICE = {
    True: "Use torch.nn.functional.layer_norm, or torch.nn.LayerNorm, where it is over the last dimensions: one op, "
    "and one in the backward pass.",
    False: "Use torch.nn.functional.rms_norm, or torch.nn.RMSNorm, where it is over the last dimensions: its backward "
    "pass keeps and reads less.",
}


@rule("hint", rank=80)
def norm(step: TimedStep) -> Iterator[Finding]:
    """Two calls of modules or more compute a layer norm or RMS norm over the last dimensions by single ops, and
    `savings=True` measured that the fused op saves 5 % of the step.

    Many models write theirs by hand, and not on each device is the fused op faster: only what was measured is told.
    """
    if step.measure is None:
        return
    found: dict[bool, list[Ints]] = defaultdict(list)
    for ops in _calls(step):
        if (run := _norm(step, ops)) is not None:
            found[bool(step.named(*SUBTRACTS)[run].any())].append(run)
    for is_centred, runs in found.items():
        ops = np.concatenate(runs)
        time_us = float(step.total_us[ops].sum()) + step.backward_us(step.below(ops))
        if len(runs) < FEWEST or not step.is_much(time_us, LEAST_FRACTION):
            continue
        cases = [(_case(step, run, is_centred), float(step.total_us[run].sum())) for run in runs]
        if not (saved := step.saved(saving(step.measure, cases), time_us)):
            continue
        backward = ", with the backward pass" if step.has_backward else ""
        parts = f"{len(ops) // len(runs):,} single ops each, which take {step.share(time_us)}"
        message = f"{len(runs):,} calls of {NAMES[is_centred]} are made of {parts}{backward}{saved}"
        finding = norm.finding(message, ADVICE[is_centred], effect_us=time_us, evidence={"ops": len(ops)})
        yield step.finding(finding, [int(run[0]) for run in runs])


def _calls(step: TimedStep) -> Iterator[Ints]:
    """Yields the ops of the forward pass of each call of a module, without those of the modules in it."""
    rows = step.main_ops[step.in_phase("forward")[step.main_ops]]
    keys = step.ops[["model", "module", "module_call"]].iloc[rows]
    yield from (rows[index] for index in keys.groupby([*keys], sort=False).indices.values())


def _norm(step: TimedStep, ops: Ints) -> Ints | None:
    """Returns the ops around the first root that a norm is made of; null where there is none."""
    is_part = step.named(*ROOTS, *MEANS, *SCALES, *SUBTRACTS, *BESIDE)[ops]
    is_root, is_mean, is_scale = (step.named(*names)[ops] for names in (ROOTS, MEANS, SCALES))
    for at in np.flatnonzero(is_root).tolist():
        first, last = at, at
        while first > 0 and is_part[first - 1] and at - first < MOST_OPS:
            first -= 1
        while last + 1 < len(ops) and is_part[last + 1] and last - at < MOST_OPS:
            last += 1
        if is_mean[first : at + 1].any() and is_scale[at : last + 1].any():
            return ops[first : last + 1]
    return None


def _case(step: TimedStep, run: Ints, is_centred: bool) -> NormCase | None:
    """Returns the sizes of one norm; null where they are not known, or it is not over the last dimensions."""
    first, mean = step.inputs(run[0]), step.inputs(run[step.named(*MEANS)[run]][0])
    if first is None or mean is None or first.dtypes[0] is None or mean.dtypes[0] is None:
        return None
    shape, dims = mean.shapes[0], mean.arguments.get("dim")
    dims = sorted(dim % len(shape) for dim in dims) if isinstance(dims, list) and shape else []
    if not dims or dims != [*range(len(shape) - len(dims), len(shape))]:
        return None
    place = Place(mean.dtypes[0], mean.device, step.has_backward)
    return NormCase(shape, len(dims), is_centred, first.dtypes[0], place)
