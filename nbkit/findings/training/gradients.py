"""Judges gradients: none, zero, not finite, vanishing or exploding along the depth of a model."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pandas as pd

from nbkit.findings.finding import Finding, Severity, at_ops, counting, rule
from nbkit.findings.training.cuts import LEAVING, Cut, GradientFlow, find_cuts
from nbkit.findings.training.facts import Audit, at_line, has_name
from nbkit.findings.training.names import about, by_model, listed_names, plural, some
from nbkit.findings.training.over_steps.cleared import reached_parameters

# So many steps of the optimizer of a model without any gradient are worth a look.
STEPS_OF_MODEL = 2
NO_BACKWARD = "Call loss.backward() before optimizer.step()."
NO_GRAPH = "Compute the loss with autograd on: outside of torch.no_grad() and torch.inference_mode()."
NO_SLOPE = (
    "Call backward() on the loss as the model gives it: item(), numpy(), torch.tensor(), detach(), argmax and "
    "comparisons pass no gradient on. requires_grad_() on their result does not bring it back."
)
NO_LOSS = "Look what backward() is called on: it must be computed from what this model gives."
NO_GRADIENT = "Keep the values in tensors that autograd follows up to the loss: no detach(), .data, numpy() or item()."
REENTRANT = (
    "Use checkpoint(..., use_reentrant=False), of transformers gradient_checkpointing_kwargs={'use_reentrant': False}; "
    "or let its input require a gradient (enable_input_require_grads())."
)
UNUSED = (
    "If they are to be trained, let the loss depend on what they give; else freeze them with requires_grad_(False)."
)
GATHERED = (
    "Put this process's own tensor back into the list that was gathered, parts[rank] = features, or use "
    "torch.distributed.nn.functional.all_gather, which passes gradients on."
)
ADVICE = {"no_grad": UNUSED, "choice": UNUSED, "checkpoint": REENTRANT, "collective": GATHERED}
NEVER = "Call the module in forward(), or leave its parameters out."
NOT_FINITE = "Find the op that makes the NaN or Inf with opcheck, and skip the step or clip before it."


@rule("error", "warning", "hint", rank=10)
def no_gradient(audit: Audit) -> list[Finding]:
    """A parameter in an optimizer gets no gradient: the named op cuts the graph; a hint where the loss does not depend
    on it, gets but a mask or an index of it, or under `torch.no_grad`; an error where no parameter gets one at any
    step, with what cuts the loss off, or that `backward()` is never called.
    """
    none, reached = _without_gradient(audit)
    is_read, is_reached = has_name(audit, none), none["model"].isin(reached).to_numpy(dtype=bool)
    findings = [*_untrained(audit), *_cut_off(audit, none[is_read & is_reached])]
    if reached:
        # A whole model may be left alone for some steps, such as the generator while its critic trains.
        is_long = (none["optimizer_steps"] >= STEPS_OF_MODEL).to_numpy(dtype=bool)
        aside = _cut_off(audit, none[is_read & ~is_reached & is_long])
        findings += [replace(one, severity="hint") for one in aside if one.severity == "warning"]
    return findings


@rule("hint", rank=20)
def never_called(audit: Audit) -> list[Finding]:
    """No op of the recording reads a parameter that an optimizer holds."""
    none, _ = _without_gradient(audit)
    unread = none[~has_name(audit, none) & (none["calls"].fillna(1) == 0).to_numpy(dtype=bool)]
    return [
        never_called.finding(
            message=f"The optimizer holds {listed_names(audit, model, names)}, but no op of the recording reads "
            f"{'it' if len(names) == 1 else 'them'}",
            advice=NEVER,
            **about(names),
        )
        for model, names in by_model(unread)
    ]


def _without_gradient(audit: Audit) -> tuple[pd.DataFrame, set[str]]:
    """Returns the parameters in an optimizer that have no gradient and stay, and the models of which others have one.

    There are none where no backward pass ran.
    """
    rows = audit.trainable
    reached = set(rows["model"][rows["gradient"].isin(["zero", "finite", "non_finite"])])
    still = (rows["changed_fraction"].fillna(0) == 0).to_numpy(dtype=bool)
    none = rows[(rows["gradient"] == "none").to_numpy(dtype=bool, na_value=False) & still]
    return (none if audit.has_backward else none[:0]), reached


def _untrained(audit: Audit) -> list[Finding]:
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
    finding = no_gradient.finding(
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


def _cut_off(audit: Audit, rows: pd.DataFrame) -> list[Finding]:
    """Returns a finding for each op that cuts these parameters off, and each model."""
    cuts = _without_grad_together(find_cuts(audit, rows)) if len(rows) else []
    return [
        _missing(audit, model, names, cut)
        for cut in dict.fromkeys(cuts)
        for model, names in by_model(rows[[one == cut for one in cuts]])
    ]


def _without_grad_together(cuts: list[Cut | None]) -> list[Cut | None]:
    """Returns the cuts with one for all modules that ran without autograd: each op in them is one."""
    first = next((cut for cut in cuts if cut is not None and cut.kind == "no_grad"), None)
    return [first if cut is not None and cut.kind == "no_grad" else cut for cut in cuts]


def _missing(audit: Audit, model: str, names: list[str], cut: Cut | None) -> Finding:
    listed = f"{listed_names(audit, model, names)} get{'s' if len(names) == 1 else ''} no gradient"
    if cut is None:
        message = f"{listed}: the loss does not depend on what {'it gives' if len(names) == 1 else 'they give'}"
        return no_gradient.finding(message, UNUSED, severity="hint", **about(names))
    op, source = (audit.ops[column].iloc[cut.op_id] for column in ("op", "source"))
    how = {
        "cut": f"the graph is cut by {op.rpartition('.')[0]}",
        "choice": f"the loss gets nothing but a choice that {op.rpartition('.')[0]} makes of them",
        "data": f"the graph is cut where {op.rpartition('.')[0]} reads .data",
        "values": "the graph is cut where a tensor is made of plain values",
        "no_grad": "their module runs without autograd (torch.no_grad)",
        "collective": f"they reach the loss through {op.rpartition('.')[0]} alone, which passes no gradient on,",
        "checkpoint": "they run in checkpoint(use_reentrant=True), of which no input requires a gradient,",
    }[cut.kind]
    if cut.kind == "checkpoint":
        source = next(one.source for one in audit.closed if cut.op_id in one.ops)
    finding = no_gradient.finding(
        severity="hint" if cut.kind in ("no_grad", "choice") else "warning",
        message=f"{listed}; {how}{at_line(audit, source)}",
        advice=ADVICE.get(cut.kind, NO_GRADIENT),
        **about(names),
    )
    found = counting(at_ops(finding, audit.ops, [cut.op_id], audit.texts), len(names))
    if cut.kind != "checkpoint":
        return found
    return replace(found, op=None, module=None, source=source, source_text=audit.texts.get(source))


@rule("error", rank=50)
def non_finite_gradient(audit: Audit) -> list[Finding]:
    """An optimizer uses a gradient with NaN or Inf."""
    rows = audit.trainable
    bad = rows[(rows["gradient"] == "non_finite").to_numpy(dtype=bool, na_value=False)]
    return [
        non_finite_gradient.finding(
            message=f"The optimizer uses NaN or Inf in the {plural(names, 'gradient')} of "
            f"{listed_names(audit, model, names)}",
            advice=NOT_FINITE,
            **about(names),
        )
        for model, names in by_model(bad)
    ]


# A chain of layers of one kind: so many, each with so much less gradient than the one behind it.
LEAST_LAYERS = 5
MOST_KEPT = 0.6
SHRINKS: dict[Severity, float] = {"warning": 1e-5, "hint": 1e-3}
VANISHING = (
    "Use residual connections, a norm between layers, another activation (GELU, ReLU), or another initialization."
)
EXPLODING = (
    "Clip the gradients (torch.nn.utils.clip_grad_norm_), put a norm between layers, or begin with smaller weights."
)


@rule("warning", "hint", rank=100, names=("vanishing_gradient", "exploding_gradient"))
def depth_gradients(audit: Audit) -> Iterator[Finding]:
    """Gradients shrink, or grow, toward the input along 5 or more like layers, by 1e3 in all (hint) or 1e5."""
    rows = audit.trained
    rows = rows[(rows["gradient"] == "finite").to_numpy(dtype=bool, na_value=False) & (rows["gradient_norm"] > 0)]
    rows = rows[rows["name"].str.endswith("weight") & rows["shape"].str.contains(",", regex=False)]
    types = dict(
        zip(zip(audit.modules["model"], audit.modules["module"], strict=True), audit.modules["type"], strict=True)
    )
    kinds = [types.get(key) for key in zip(rows["model"], rows["module"], strict=True)]
    for (model, kind, _), chain in rows.groupby(
        [rows["model"], pd.Series(kinds, rows.index), rows["shape"]], sort=False
    ):
        norms = chain["gradient_norm"].to_numpy()
        for name, values in (("vanishing_gradient", norms), ("exploding_gradient", norms[::-1])):
            severity = _shrinking(values)
            if severity is not None:
                yield _along(name, severity, str(model), str(kind), chain)


def _shrinking(norms: np.ndarray) -> Severity | None:
    """Returns how severe it is that each value is so much less than the next; null if it is not so."""
    if len(norms) < LEAST_LAYERS or not (norms[:-1] <= MOST_KEPT * norms[1:]).all():
        return None
    fits = [severity for severity, most in SHRINKS.items() if norms[0] <= most * norms[-1]]
    return fits[0] if fits else None


def _along(name: str, severity: Severity, model: str, kind: str, chain: pd.DataFrame) -> Finding:
    names, norms = chain["name"].tolist(), chain["gradient_norm"].tolist()
    per_layer = (norms[-1] / norms[0]) ** (1 / (len(norms) - 1))
    shrinks, factor = ("shrinks", per_layer) if name == "vanishing_gradient" else ("grows", 1 / per_layer)
    return depth_gradients.finding(
        name=name,
        severity=severity,
        message=f"The gradient {shrinks} toward the input by a factor of {factor:.2g} per layer along {len(norms)} "
        f"{kind} layers of {model}: norm {norms[-1]:.2g} at {names[-1]}, {norms[0]:.2g} at {names[0]}",
        advice=VANISHING if name == "vanishing_gradient" else EXPLODING,
        parameter=names[0],
        count=len(names),
        evidence={"parameters": names, "gradient_norms": norms},
    )
