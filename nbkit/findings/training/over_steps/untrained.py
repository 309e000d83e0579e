"""Finds gradients that no step of an optimizer uses."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from nbkit.findings.finding import Finding, Rule, at_ops, counting, rule
from nbkit.findings.training.facts import Audit, Pass
from nbkit.findings.training.names import by_model, listed_names

NO_STEP = "Call optimizer.step() after backward(), and before zero_grad(). If that is done elsewhere, record it, too."
IN_LOOP = (
    "Where gradients are to be summed over several backward passes, call zero_grad() once, before the first of them."
)
OF_STEPS = ("no_step", "discarded_gradient")
# So many times, and nothing is a warm-up or a step that was left out once.
FEWEST = 2


@rule("warning", "hint", rank=310, verbs=("opaudit", "audit"))
def no_step(audit: Audit) -> list[Finding]:
    """Gradients are computed and cleared, and no optimizer steps: a warning over 3 backward passes or more; or a script
    sums gradients in 20 steps or more, and no optimizer steps in any.
    """
    if audit.steps or audit.skips or audit.has_steps:
        return []
    unread, rows = _unread(audit), audit.trained
    held = rows[(rows["in_optimizer"] == 1).to_numpy(dtype=bool, na_value=False) & rows["requires_grad"]]
    if not unread or not len(held) or (held["changed_fraction"].fillna(1) > 0).any():
        return []
    named = "; ".join(listed_names(audit, model, names) for model, names in by_model(held))
    message = (
        f"No optimizer steps: the gradients of {len(unread)} of {len(audit.passes)} backward passes are cleared "
        f"(zero_grad()) before one uses them, and {named} {'stay' if len(held) > 1 else 'stays'} as before"
    )
    return [_at_pass(audit, unread, no_step, message, NO_STEP, is_sure=len(unread) >= FEWEST)]


@rule("warning", "hint", rank=320)
def discarded_gradient(audit: Audit) -> list[Finding]:
    """Gradients of two backward passes or more are cleared before an optimizer uses them, and no op reads what these
    passes compute: a warning where that is so before each of two steps or more.
    """
    unread = _unread(audit) if audit.steps or audit.has_steps else []
    if len(unread) < FEWEST:
        return []
    counts = f"{len(unread)} of {len(audit.passes)} backward passes"
    message = f"The gradients of {counts} are cleared (zero_grad()) before an optimizer uses them"
    is_sure = audit.steps >= FEWEST and {one.step for one in unread} >= set(range(audit.steps))
    return [_at_pass(audit, unread, discarded_gradient, message, IN_LOOP, is_sure=is_sure)]


def _at_pass(audit: Audit, unread: Sequence[Pass], of: Rule, message: str, advice: str, *, is_sure: bool) -> Finding:
    evidence = {"passes": len(audit.passes), "cleared": len(unread)}
    finding = of.finding(message, advice, severity="warning" if is_sure else "hint", evidence=evidence)
    # It is about the line, not about the op that a backward pass happens to begin with.
    placed = at_ops(finding, audit.ops, [unread[0].ops.start], audit.texts)
    return replace(counting(placed, len(unread)), op=None)


def _unread(audit: Audit) -> list[Pass]:
    """Returns the passes of which nothing that they computed is read by another op, before it is cleared.

    An attack on the model reads gradients of its inputs, others keep them, or change parameters by hand. Clipping reads
    all, and uses nothing.
    """
    if not any(one.is_cleared for one in audit.passes):
        return []
    ops = audit.ops
    names = ops["op"].to_numpy(object)
    is_backward = (ops["phase"] == "backward").to_numpy(dtype=bool)
    clears = np.array(["zero" in name.split(".")[1] if name.count(".") else False for name in names.tolist()])
    read_by = ~is_backward & ~clears & ~_clips(audit)
    op_ids, storages, is_input = audit.step.op_ids, audit.step.memory, ~audit.step.is_output
    first_seen = pd.Series(op_ids).groupby(storages).min().to_dict()
    found = []
    for one, following in zip(audit.passes, [*audit.passes[1:], None], strict=True):
        if not one.is_cleared or not len(one.ops) or following is None:
            continue
        inside = (op_ids >= one.ops.start) & (op_ids < one.ops.stop) & ~is_input
        made = {storage for storage in storages[inside].tolist() if first_seen[storage] >= one.ops.start}
        kept = set(storages[inside & np.array([names[at].endswith("add_.Tensor") for at in op_ids.tolist()])].tolist())
        reads = is_input & read_by[op_ids] & (op_ids >= one.ops.stop)
        late = set(storages[reads].tolist())
        soon = set(storages[reads & (op_ids < following.ops.start)].tolist())
        if not (made & late) and not (kept & soon):
            found.append(one)
    return found


def _clips(audit: Audit) -> np.ndarray:
    """Returns which ops lines call that clip gradients."""
    return audit.ops["source"].isin({clip.source for clip in audit.clips} - {None}).to_numpy(dtype=bool)
