"""Judges gradients that are exactly zero, and finds the reason: a mask of attention, a factor that begins at zero."""

import re
from collections.abc import Callable, Iterator

import pandas as pd

from nbkit.findings.dataflow.attention import is_dropout
from nbkit.findings.dataflow.by_design import by_design
from nbkit.findings.dataflow.flow import Flow, Op
from nbkit.findings.dataflow.masks import MEANING
from nbkit.findings.finding import Finding, rule
from nbkit.findings.training.facts import Audit
from nbkit.findings.training.names import about, listed_names, plural, some
from nbkit.ops.families import ADDS, FUSED_ATTENTION, MULTIPLIED, family

# After so many steps a matrix that began as zeros (LoRA, the last layer of a residual branch) is zero no more.
STEPS_FROM_ZERO = 3
FLAT = (
    "Look whether the loss depends on them by a function that is flat there (a clamp, a ReLU that is never active), or "
    "by a difference in which they cancel."
)
BOTH = "Begin with random numbers in one of them: of two zeros that are multiplied neither ever gets a gradient."
REVERSED = (
    "Read the last state of both directions (h_n, or output[:, -1] of the first and output[:, 0] of the reverse one): "
    "at the last position the reverse one has read nothing but that position."
)
HALF = "Scale the loss (torch.amp.GradScaler), or train in bfloat16 or float32: float16 has no value below 6e-8 but 0."
FACTOR = "Nothing, if that is meant (LoRA, a branch that begins as nothing): look at the next steps."
DESIGN = "Nothing, if that is meant: with other inputs, or further on in training, they get gradients."
# As torch names a weight, also one that a weight norm makes.
WEIGHT = re.compile(r"(?:parametrizations\.)?weight(?:_[gv]|\.original\d)?$")
# Where the factors of a product stand among its inputs; a bias is none.
FACTORS = {**MULTIPLIED, **dict.fromkeys(family("MULTIPLIES NORMS"), (0, 1))}
# The weights by which the reverse direction of an RNN reads its own state.
REVERSE = re.compile(r"weight_hh_l\d+_reverse$")
# The mask is the fourth of the inputs of fused attention.
MASKED = 4
MOST_OPS = 10_000


@rule("warning", "hint", rank=90)
def zero_gradient(audit: Audit) -> list[Finding]:
    """Each element of a gradient is exactly 0: a warning over 3 steps (but of a bias alone, or where it is so by
    design: a softmax over one position, an input of zeros that no parameter makes), or of all parameters in float16.
    """
    return [
        _zero(audit, str(model), of, zero)
        for model, of in audit.trainable.groupby("model", sort=False)
        if len(zero := of[(of["gradient"] == "zero").to_numpy(dtype=bool, na_value=False)])
    ]


def _zero(audit: Audit, model: str, of: pd.DataFrame, zero: pd.DataFrame) -> Finding:
    names = zero["name"].tolist()
    is_half = bool((zero["dtype"] == "float16").all())
    steps, trained = int(zero["optimizer_steps"].min()), frozenset(audit.trained["name"])
    fed_zero = frozenset(filter(_has_bias(of), names))
    design = by_design(audit.flow, names, trained, fed_zero) if steps >= STEPS_FROM_ZERO else None
    is_lost = is_half and len(zero) == int(of["gradient"].isin(["zero", "finite", "non_finite"]).sum())
    # A bias alone has none where only differences of what it is added to matter.
    has_matrix = bool(zero["shape"].str.contains(",", regex=False).any())
    is_long = steps >= STEPS_FROM_ZERO and has_matrix and design is None
    when = f" at all {steps} steps" if steps > 1 else ""
    why, advice = ("; float16 rounds what is below 6e-8 to 0", HALF) if is_half else _reason(audit, of, zero)
    why, advice = (why, advice) if design is None else (design, DESIGN)
    return zero_gradient.finding(
        severity="warning" if design is None and (is_lost or is_long) else "hint",
        message=f"The {plural(names, 'gradient')} of {listed_names(audit, model, names)} "
        f"{'is' if len(names) == 1 else 'are'} exactly 0 in every element{when}{why}",
        advice=advice,
        **about(names, steps=steps),
    )


def _reason(audit: Audit, of: pd.DataFrame, zero: pd.DataFrame) -> tuple[str, str]:
    """Returns why the gradients are zero, as far as the dataflow shows it, and what to do."""
    flow, names, has_bias = audit.flow, zero["name"].tolist(), _has_bias(of)
    it, it_gives = ("it", "it gives") if len(names) == 1 else ("them", "they give")
    factors = _began_at_zero(audit, str(of["model"].iloc[0]))
    before = [_factors_behind(flow, name, factors) for name in names]
    if int(zero["optimizer_steps"].max()) < STEPS_FROM_ZERO and all(before):
        behind = list(dict.fromkeys(name for found in before for name in sorted(found)))
        begin = "begins" if len(behind) == 1 else "begin"
        return f": {some(behind)}, by which what {it_gives} is multiplied, {begin} at 0", FACTOR
    if set(names) <= factors and 0 < len(names) <= 2 * sum(map(bool, before)):
        return ": they are zeros themselves, and what each gives is multiplied by another of them", BOTH
    if all(REVERSE.search(name) for name in names):
        return ": what the loss reads of the reverse direction has read one position, and no state before it", REVERSED
    masked = [] if factors else [op.module for op in _masked(flow, set(filter(has_bias, names)))]
    if masked and all(any(f"{name}.".startswith(f"{module}.") for module in masked) for name in names):
        why = f": the attention of {some([*dict.fromkeys(map(str, masked))])} gives 0 at every position, as its mask "
        return f"{why}hides all of them, or all but such as are 0", MEANING
    if all(map(has_bias, names)):
        return f", though the bias beside {it} has a gradient: what goes into {it} is 0", FLAT
    return "", FLAT


def _has_bias(of: pd.DataFrame) -> Callable[[str], bool]:
    """Returns what says of a weight whether the bias beside it has a gradient, so that what goes into it is 0."""
    finite = set(of["name"][(of["gradient"] == "finite").to_numpy(dtype=bool, na_value=False)])
    return lambda name: WEIGHT.search(name) is not None and WEIGHT.sub("bias", name) in finite


def _began_at_zero(audit: Audit, model: str) -> set[str]:
    """Returns the factors that held nothing but zeros: their change is known, and no share of what they were."""
    rows = audit.trained[audit.trained["model"] == model]
    is_zero = rows["update_fraction"].isna() & rows["changed_fraction"].notna() & ~rows["name"].str.endswith("bias")
    return set(rows["name"][is_zero])


def _factors_behind(flow: Flow, name: str, factors: set[str]) -> set[str]:
    """Returns the factors by which all that is made of a parameter is multiplied on its way to the loss."""
    readers = [op for op in flow.ops.values() if op.is_ahead and any(one.name == name for one in op.inputs)]
    pending, seen, found = readers, {op.op_id for op in readers}, set()
    while factors and pending and len(seen) < MOST_OPS:
        op = pending.pop()
        names = {flow.behind(op.inputs[at]).name for at in FACTORS.get(op.name, ()) if at < len(op.inputs)}
        if behind := {str(one) for one in names & factors} - {name}:
            found |= behind
            continue
        following = [reader for reader in flow.readers(op) if reader.op_id not in seen]
        if any(reader.phase == "backward" and reader.name == "ones_like" for reader in following):
            return set()  # it reaches the loss past them
        seen |= {reader.op_id for reader in following}
        pending += [reader for reader in following if reader.is_ahead]
    return set() if pending else found


def _masked(flow: Flow, names: set[str]) -> Iterator[Op]:
    """Yields the attention with a mask that goes, as it is, into products with one of these parameters."""
    for op in flow.ops.values():
        factors = [op.inputs[at] for at in FACTORS.get(op.name, ()) if at < len(op.inputs)] if op.is_ahead else []
        if any(flow.behind(factor).name in names for factor in factors):
            origins = (flow.origin(factor) for factor in factors)
            yield from (one for one in origins if one is not None and _is_masked_attention(flow, one))


def _is_masked_attention(flow: Flow, op: Op) -> bool:
    if op.name.startswith(FUSED_ATTENTION):
        return len(op.inputs) >= MASKED
    weights = flow.origin(op.inputs[0]) if op.name == "bmm" else None
    if weights is not None and is_dropout(flow, weights, 0):
        weights = flow.origin(weights.inputs[0])
    scores = flow.origin(weights.inputs[0]) if weights is not None and weights.name == "_safe_softmax" else None
    return scores is not None and scores.name in ADDS
