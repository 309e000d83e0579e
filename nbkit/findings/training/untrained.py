"""Finds steps that train nothing: no parameter of an optimizer gets a gradient, or no step uses those it gets."""

from dataclasses import replace

import numpy as np
import pandas as pd

from nbkit.findings.finding import Finding, at_ops, counting
from nbkit.findings.training.cleared import reached_parameters
from nbkit.findings.training.cuts import LEAVING, Cut, GradientFlow
from nbkit.findings.training.facts import Audit, Pass, at_line, has_name
from nbkit.findings.training.names import about, by_model, listed_names, some

NO_BACKWARD = "Call loss.backward() before optimizer.step()."
NO_GRAPH = "Compute the loss with autograd on: outside of torch.no_grad() and torch.inference_mode()."
NO_SLOPE = (
    "Call backward() on the loss as the model gives it: item(), numpy(), torch.tensor(), detach(), argmax and "
    "comparisons pass no gradient on. requires_grad_() on their result does not bring it back."
)
NO_LOSS = "Look what backward() is called on: it must be computed from what this model gives."
NO_STEP = "Call optimizer.step() after backward(), and before zero_grad(). If that is done elsewhere, record it, too."
IN_LOOP = (
    "Where gradients are to be summed over several backward passes, call zero_grad() once, before the first of them."
)
OF_STEPS = ("no_step", "discarded_gradient")
# So many times, and nothing is a warm-up or a step that was left out once.
FEWEST = 2


def untrained(audit: Audit) -> list[Finding]:
    """Returns an error where optimizers step and no parameter of a model gets a gradient or moves.

    A step before which nothing ran may be one of a delayed backward pass, or a scheduler's.
    """
    rows = audit.trainable
    everything = audit.trained
    is_idle = audit.steps > 0 and audit.idle_steps == audit.steps and audit.ran_before_step
    if not is_idle or not len(rows) or not has_name(audit, rows).any():
        return []
    has_none = (everything["gradient"] == "none").to_numpy(dtype=bool, na_value=False)
    is_still = (everything["changed_fraction"] == 0).to_numpy(dtype=bool, na_value=False)
    if not has_none.all() or not is_still.all() or reached_parameters(audit):
        return []
    cut = GradientFlow(audit).cut_of_loss(rows["name"].tolist()) if audit.has_backward else None
    why, advice = _cause(audit, cut)
    named = "; ".join(listed_names(audit, model, names) for model, names in by_model(rows))
    optimizers = [*dict.fromkeys(audit.optimizers)]
    times = "once" if audit.steps == 1 else f"{audit.steps} times"
    they = ("step", "change") if len(optimizers) > 1 else ("steps", "changes")
    finding = Finding(
        rule="no_gradient",
        severity="error",
        message=f"{some(optimizers)} {they[0]} {times} and {they[1]} nothing: {named} "
        f"get{'s' if len(rows) == 1 else ''} no gradient; {why}",
        advice=advice,
        **about(rows["name"].tolist(), steps=audit.steps),
    )
    if cut is None:
        return [finding]
    return [counting(at_ops(finding, audit.ops, [_call_of(audit, cut)], audit.texts), len(rows))]


def _call_of(audit: Audit, cut: Cut) -> int:
    """Returns the op_id of what cuts: of the call that takes a value out of torch, else of the op."""
    parent = audit.ops["parent_id"].iloc[cut.op_id]
    return cut.op_id if pd.isna(parent) or audit.ops["op"].iloc[int(parent)] not in LEAVING else int(parent)


def _cause(audit: Audit, cut: Cut | None) -> tuple[str, str]:
    """Returns why a loss has no gradient, and what to do."""
    if not audit.has_backward:
        return "backward() is never called", NO_BACKWARD
    if cut is None:
        return "backward() is called on what does not depend on them", NO_LOSS
    op, source = (audit.ops[column].iloc[_call_of(audit, cut)] for column in ("op", "source"))
    op = op if op in LEAVING else op.rpartition(".")[0]
    line = at_line(audit, source)
    if cut.kind == "no_grad":
        return f"the loss is computed without autograd (torch.no_grad){line}", NO_GRAPH
    if cut.kind == "data":
        return f"the graph is cut where {op} reads .data{line}", NO_SLOPE
    if cut.kind == "values":
        return f"the graph is cut where a tensor is made of plain values{line}", NO_SLOPE
    return f"the graph is cut by {op}{line}", NO_SLOPE


def unused_gradients(audit: Audit) -> list[Finding]:
    """Returns a finding where gradients are cleared though no op read them and no optimizer used them."""
    passes = audit.passes
    unread = _unread(audit) if any(one.is_cleared for one in passes) else []
    if not unread:
        return []
    first = unread[0]
    counts = f"{len(unread)} of {len(passes)}"
    evidence = {"passes": len(passes), "cleared": len(unread)}
    if not audit.steps and not audit.skips and not audit.has_steps:
        rows = audit.trained
        held = rows[(rows["in_optimizer"] == 1).to_numpy(dtype=bool, na_value=False) & rows["requires_grad"]]
        if not len(held) or (held["changed_fraction"].fillna(1) > 0).any():
            return []
        named = "; ".join(listed_names(audit, model, names) for model, names in by_model(held))
        rule, advice = "no_step", NO_STEP
        message = (
            f"No optimizer steps: the gradients of {counts} backward passes are cleared (zero_grad()) before one "
            f"uses them, and {named} {'stay' if len(held) > 1 else 'stays'} as before"
        )
        is_sure = len(unread) >= FEWEST
    elif (audit.steps or audit.has_steps) and len(unread) >= FEWEST:
        rule, advice = "discarded_gradient", IN_LOOP
        message = f"The gradients of {counts} backward passes are cleared (zero_grad()) before an optimizer uses them"
        is_sure = audit.steps >= FEWEST and {one.step for one in unread} >= set(range(audit.steps))
    else:
        return []
    finding = Finding(rule, "warning" if is_sure else "hint", message, advice, evidence=evidence)
    # It is about the line, not about the op that a backward pass happens to begin with.
    return [replace(counting(at_ops(finding, audit.ops, [first.ops.start], audit.texts), len(unread)), op=None)]


def _unread(audit: Audit) -> list[Pass]:
    """Returns the passes of which nothing that they computed is read by another op, before it is cleared.

    An attack on the model reads gradients of its inputs, others keep them, or change parameters by hand. Clipping reads
    all, and uses nothing.
    """
    ops, tensors = audit.ops, audit.tensors
    names = ops["op"].to_numpy(object)
    is_backward = (ops["phase"] == "backward").to_numpy(dtype=bool)
    clears = np.array(["zero" in name.split(".")[1] if name.count(".") else False for name in names.tolist()])
    read_by = ~is_backward & ~clears & ~_clips(audit)
    op_ids, storages = tensors["op_id"].to_numpy(), tensors["storage_id"].fillna(-1).to_numpy(dtype=np.int64)
    is_input = (tensors["role"] == "input").to_numpy(dtype=bool)
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
