"""Finds means of micro-batches that add up to one step of an optimizer, none of them divided by their number."""

import json

import numpy as np

from nbkit.findings.finding import Finding, at_ops
from nbkit.findings.training.facts import Audit

# So many passes of one line in each step; fewer may be losses of their own.
FEWEST = 4
LOSSES = ("mse_loss", "nll_loss_forward", "nll_loss2d_forward", "l1_loss", "smooth_l1_loss", "huber_loss")
LOGISTIC = ("binary_cross_entropy", "binary_cross_entropy_with_logits")
MEAN = 1  # of torch's reductions, and the one that a loss has where its arguments do not say
SCALING = ("aten.mul_", "aten.div_", "aten._foreach_mul_", "aten._foreach_div_")
ADVICE = (
    "If the passes are parts of one batch, divide each loss by their number before backward(); if the sum is meant, "
    "this is as it should be."
)


def summed_means(audit: Audit) -> list[Finding]:
    """Returns a finding where in each step backward passes of one line begin at means that nothing divides."""
    if len(audit.optimizers) != 1:
        return []
    ended = [one for one in audit.passes if one.step < audit.steps]
    steps = [[one for one in ended if one.step == step] for step in sorted({one.step for one in ended})]
    if not steps or min(map(len, steps)) < FEWEST:
        return []
    losses = [_loss(audit, one.ops) for one in ended]
    if None in losses or any(_is_scaled(audit, passes[-1].ops.stop, passes[-1].step) for passes in steps):
        return []
    op_ids = [op_id for op_id in losses if op_id is not None]
    rows = audit.ops.iloc[op_ids]
    if rows["source"].nunique(dropna=False) > 1 or not all(map(_is_mean, rows["op"], rows["arguments"])):
        return []
    counts = sorted({len(passes) for passes in steps})
    many = " to ".join(map(str, dict.fromkeys((counts[0], counts[-1]))))
    message = (
        f"{many} backward passes add up to each step of {audit.optimizers[0]}, and each begins at a mean that is not "
        f"divided: the gradient is {many} times that of the mean over all of them"
    )
    return [at_ops(Finding("summed_means", "hint", message, ADVICE), audit.ops, op_ids, audit.texts)]


def _loss(audit: Audit, ops: range) -> int | None:
    """Returns the op that gave what a backward pass begins at; null if that is not one number of the recording."""
    began = [op_id for op_id in ops if audit.ops["op"].iloc[op_id] == "aten.ones_like.default"][:1]
    tensors = audit.tensors
    root = tensors["tensor_id"][tensors["op_id"].isin(began) & (tensors["role"] == "input")]
    made = tensors["op_id"][tensors["tensor_id"].isin(root) & (tensors["role"] == "output")]
    before = made[made < ops.start]
    return int(before.iloc[-1]) if len(before) else None


def _is_mean(op: str, arguments: object) -> bool:
    name = op.split(".")[1]
    reduction = json.loads(arguments).get("reduction", MEAN) if isinstance(arguments, str) else MEAN
    return name == "mean" or (name in (*LOSSES, *LOGISTIC) and reduction == MEAN)


def _is_scaled(audit: Audit, after: int, step: int) -> bool:
    """Returns whether gradients may be divided between the last pass and the step, by other than clipping."""
    ops = audit.ops.iloc[after:]
    ops = ops[(ops["step"] == step) & (ops["phase"] == "other") & ~ops["source"].isin([c.source for c in audit.clips])]
    return bool(np.any(ops["op"].str.startswith(SCALING)))
