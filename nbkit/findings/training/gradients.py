"""Judges gradients: none, zero, not finite, vanishing or exploding along the depth of a model."""

from dataclasses import replace

import numpy as np
import pandas as pd

from nbkit.findings.finding import Finding, at_ops, counting
from nbkit.findings.training.cuts import Cut, find_cuts
from nbkit.findings.training.facts import Audit, at_line, has_name
from nbkit.findings.training.names import about, by_model, listed_names, plural

# So many steps of the optimizer of a model without any gradient are worth a look.
STEPS_OF_MODEL = 2
NO_GRADIENT = "Keep the values in tensors that autograd follows up to the loss: no detach(), .data, numpy() or item()."
REENTRANT = (
    "Use checkpoint(..., use_reentrant=False), of transformers gradient_checkpointing_kwargs={'use_reentrant': False}; "
    "or let its input require a gradient (enable_input_require_grads())."
)
UNUSED = (
    "If they are to be trained, let the loss depend on what they give; else freeze them with requires_grad_(False)."
)
NEVER = "Call the module in forward(), or leave its parameters out."
NOT_FINITE = "Find the op that makes the NaN or Inf with opcheck, and skip the step or clip before it."


def missing_gradients(audit: Audit) -> list[Finding]:
    """Returns findings of parameters in an optimizer that have no gradient, though a backward pass ran."""
    rows = audit.trainable
    reached = set(rows["model"][rows["gradient"].isin(["zero", "finite", "non_finite"])])
    still = (rows["changed_fraction"].fillna(0) == 0).to_numpy(dtype=bool)
    none = rows[(rows["gradient"] == "none").to_numpy(dtype=bool, na_value=False) & still]
    if not audit.has_backward or not len(none):
        return []
    is_read = has_name(audit, none)
    is_reached = none["model"].isin(reached).to_numpy(dtype=bool)
    findings = _cut_off(audit, none[is_read & is_reached])
    if reached:
        # A whole model may be left alone for some steps, such as the generator while its critic trains.
        is_long = (none["optimizer_steps"] >= STEPS_OF_MODEL).to_numpy(dtype=bool)
        aside = _cut_off(audit, none[is_read & ~is_reached & is_long])
        findings += [replace(one, severity="hint") for one in aside if one.severity == "warning"]
    unread = none[~is_read & (none["calls"].fillna(1) == 0).to_numpy(dtype=bool)]
    return [*findings, *(_never(audit, model, names) for model, names in by_model(unread))]


def _cut_off(audit: Audit, rows: pd.DataFrame) -> list[Finding]:
    """Returns a finding for each op that cuts these parameters off, and each model."""
    cuts = _without_grad_together(find_cuts(audit, rows))
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
        return Finding("no_gradient", "hint", message, UNUSED, **about(names))
    op, source = (audit.ops[column].iloc[cut.op_id] for column in ("op", "source"))
    how = {
        "cut": f"the graph is cut by {op.rpartition('.')[0]}",
        "choice": f"the loss gets nothing but a choice that {op.rpartition('.')[0]} makes of them",
        "data": f"the graph is cut where {op.rpartition('.')[0]} reads .data",
        "values": "the graph is cut where a tensor is made of plain values",
        "no_grad": "their module runs without autograd (torch.no_grad)",
        "checkpoint": "they run in checkpoint(use_reentrant=True), of which no input requires a gradient,",
    }[cut.kind]
    if cut.kind == "checkpoint":
        source = next(one.source for one in audit.closed if cut.op_id in one.ops)
    finding = Finding(
        rule="no_gradient",
        severity="hint" if cut.kind in ("no_grad", "choice") else "warning",
        message=f"{listed}; {how}{at_line(audit, source)}",
        advice={"no_grad": UNUSED, "choice": UNUSED, "checkpoint": REENTRANT}.get(cut.kind, NO_GRADIENT),
        **about(names),
    )
    found = counting(at_ops(finding, audit.ops, [cut.op_id], audit.texts), len(names))
    if cut.kind != "checkpoint":
        return found
    return replace(found, op=None, module=None, source=source, source_text=audit.texts.get(source))


def _never(audit: Audit, model: str, names: list[str]) -> Finding:
    return Finding(
        rule="never_called",
        severity="hint",
        message=f"The optimizer holds {listed_names(audit, model, names)}, but no op of the recording reads "
        f"{'it' if len(names) == 1 else 'them'}",
        advice=NEVER,
        **about(names),
    )


def non_finite_gradients(audit: Audit) -> list[Finding]:
    """Returns findings of gradients with NaN or Inf that an optimizer used."""
    rows = audit.trainable
    bad = rows[(rows["gradient"] == "non_finite").to_numpy(dtype=bool, na_value=False)]
    return [
        Finding(
            rule="non_finite_gradient",
            severity="error",
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
SHRINKS = {"warning": 1e-5, "hint": 1e-3}
VANISHING = (
    "Use residual connections, a norm between layers, another activation (GELU, ReLU), or another initialization."
)
EXPLODING = (
    "Clip the gradients (torch.nn.utils.clip_grad_norm_), put a norm between layers, or begin with smaller weights."
)


def depth_gradients(audit: Audit) -> list[Finding]:
    """Returns findings of chains of like layers along which gradients vanish, or explode, toward the input."""
    rows = audit.trained
    rows = rows[(rows["gradient"] == "finite").to_numpy(dtype=bool, na_value=False) & (rows["gradient_norm"] > 0)]
    rows = rows[rows["name"].str.endswith("weight") & rows["shape"].str.contains(",", regex=False)]
    types = dict(
        zip(zip(audit.modules["model"], audit.modules["module"], strict=True), audit.modules["type"], strict=True)
    )
    kinds = [types.get(key) for key in zip(rows["model"], rows["module"], strict=True)]
    findings = []
    for (model, kind, _), chain in rows.groupby(
        [rows["model"], pd.Series(kinds, rows.index), rows["shape"]], sort=False
    ):
        norms = chain["gradient_norm"].to_numpy()
        for rule, values in (("vanishing_gradient", norms), ("exploding_gradient", norms[::-1])):
            severity = _shrinking(values)
            if severity is not None:
                findings.append(_along(rule, severity, str(model), str(kind), chain))
    return findings


def _shrinking(norms: np.ndarray) -> str | None:
    """Returns how severe it is that each value is so much less than the next; null if it is not so."""
    if len(norms) < LEAST_LAYERS or not (norms[:-1] <= MOST_KEPT * norms[1:]).all():
        return None
    fits = [severity for severity, most in SHRINKS.items() if norms[0] <= most * norms[-1]]
    return fits[0] if fits else None


def _along(rule: str, severity: str, model: str, kind: str, chain: pd.DataFrame) -> Finding:
    names, norms = chain["name"].tolist(), chain["gradient_norm"].tolist()
    per_layer = (norms[-1] / norms[0]) ** (1 / (len(norms) - 1))
    shrinks, factor = ("shrinks", per_layer) if rule == "vanishing_gradient" else ("grows", 1 / per_layer)
    return Finding(
        rule=rule,
        severity="warning" if severity == "warning" else "hint",
        message=f"The gradient {shrinks} toward the input by a factor of {factor:.2g} per layer along {len(norms)} "
        f"{kind} layers of {model}: norm {norms[-1]:.2g} at {names[-1]}, {norms[0]:.2g} at {names[0]}",
        advice=VANISHING if rule == "vanishing_gradient" else EXPLODING,
        parameter=names[0],
        count=len(names),
        evidence={"parameters": names, "gradient_norms": norms},
    )
