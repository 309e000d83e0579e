"""Judges updates: by no optimizer, lost to rounding, skipped, and those by which equal parameters become unequal."""

from collections.abc import Iterator
from dataclasses import replace

import pandas as pd

from nbkit.findings.finding import Finding, rule
from nbkit.findings.training.facts import Audit, Average, at_line
from nbkit.findings.training.names import about, by_model, listed_names, plural, some

HALF = ("bfloat16", "float16")
# Share of the elements with a gradient that moved, below which training in half precision stands nearly still.
LEAST_MOVED = 0.1
# A schedule may begin or end with less; a step of float32 or wider that moves nothing then is no fault.
LEAST_RATE = 1e-6
# A GradScaler begins with a scale that is too large, and skips the first steps until it fits.
SKIPS_EXPECTED = 5
NOT_HELD = "Give model.parameters() to the optimizer, or freeze the rest with requires_grad_(False)."
OTHER_MODEL = "Make the optimizer from the parameters of the model that runs, after it was copied, moved or wrapped."
INNER = "Register the module: an attribute of the model, or an element of its nn.ModuleList or nn.ModuleDict."
LOST = "Keep the weights in float32 and compute in half precision (torch.autocast), or use a larger learning rate."
AVERAGE = "Keep the average in float32, and cast a copy of it where it is used."
BLOCK = (
    "Begin a block of torch.autocast in each step, around forward pass and loss; or call torch.clear_autocast_cache() "
    "after optimizer.step()."
)
NOTHING = "Look at the learning rate, and whether the optimizer's state holds NaN or Inf."
BEHIND = (
    "Others move by gradients of that size: see whether the optimizer writes into a copy, such as that of a weight "
    "that is not contiguous, and compare its ops with those of the CPU (nbkit.opdiff)."
)
CLIPPED = "Clip to a larger norm: about that which the gradients mostly have."
# A gradient below this share of the largest may be too small to move a weight.
LEAST_BEHIND = 0.03
# A norm that is clipped to less than this share of what it was moves nothing.
LEAST_LEFT = 1e-3
TIE = "To share them, assign the parameter itself, as in head.weight = embedding.weight; a copy is a second parameter."
SYNC = (
    "Replicas that are to stay equal need the same gradients: average them before each step, also after a model is "
    "moved or wrapped anew. Nothing, if each is to be trained on its own."
)
SKIPPED = "If it goes on, find the op that makes the NaN or Inf with opcheck: a smaller scale does not mend it."


@rule("warning", "hint", rank=30)
def not_in_optimizer(audit: Audit) -> list[Finding]:
    """A parameter gets a gradient, no optimizer of the process holds it, and it does not move; a hint where it is most
    of a model, or all.
    """
    rows = audit.trained
    rows = rows[rows["requires_grad"] & rows["in_optimizer"].notna()]
    if not audit.steps or not len(rows):
        return []
    has_gradient = rows["gradient"].isin(["finite", "non_finite"]) & (rows["changed_fraction"].fillna(1) == 0)
    outside = rows[has_gradient & (rows["in_optimizer"] == 0)]
    updated = rows[(rows["in_optimizer"] == 1) & (rows["gradient"] != "none")]
    return [
        _not_held(audit, model, names, is_meant=_is_meant(audit, model, of, updated))
        for model, names in by_model(outside)
        for of in [outside[outside["model"] == model]]
    ]


def _is_meant(audit: Audit, model: str, outside: pd.DataFrame, updated: pd.DataFrame) -> bool:
    """Returns whether parameters may be left out on purpose.

    All but a small part outside is how a new head is trained, and eval mode says that a part is fixed. A whole model
    outside may judge what a larger one gives: such a one is called for that and for what it is compared with.
    """
    modes = [(path, mode) for (name, path, _), mode in audit.modes.items() if name == model]
    is_part = bool((updated["model"] == model).any())
    held = int((updated["model"] == model).sum()) if is_part else len(updated)
    inside = [mode for path, mode in modes if path in set(outside["module"])]
    is_fixed = bool(inside) and not any(inside)
    calls = sum(path == "" for path, _ in modes)
    return held < len(outside) or is_fixed or (not is_part and calls > max(len(audit.passes), audit.steps))


def _not_held(audit: Audit, model: str, names: list[str], *, is_meant: bool) -> Finding:
    is_stale = audit.idle_steps == audit.steps
    is_inner = model in audit.inner
    is_meant = is_meant and not is_stale and not is_inner
    one = len(names) == 1
    what = "gets a gradient but is in no optimizer" if one else "get gradients but are in no optimizer"
    why = "; the optimizer steps, but none of its own parameters gets a gradient" if is_stale else ""
    why = "; another model calls it without holding it in an attribute" if is_inner else why
    return not_in_optimizer.finding(
        severity="hint" if is_meant else "warning",
        message=f"{listed_names(audit, model, names).removeprefix('all ')} {what}{why}",
        advice=INNER if is_inner else OTHER_MODEL if is_stale else NOT_HELD,
        **about(names),
    )


@rule("warning", rank=70)
def lost_update(audit: Audit) -> Iterator[Finding]:
    """The optimizer steps, and rounding leaves the parameters where they were: under a tenth of the elements move in
    half precision, none in others, also of one parameter while others move; or an average of parameters in half
    precision does not follow them, as rounding takes its updates back.
    """
    rows = audit.trainable
    rows = rows[(rows["gradient"] == "finite").to_numpy(dtype=bool, na_value=False) & rows["changed_fraction"].notna()]
    rows = rows[(rows["learning_rate"] > 0).to_numpy(dtype=bool)]
    for (model, dtype, rate), of in rows.groupby(["model", "dtype", "learning_rate"], sort=False):
        changed = float((of["changed_fraction"] * of["numel"]).sum())
        moving = float(((1 - of["gradient_zero_fraction"]) * of["numel"]).sum())
        is_half = dtype in HALF
        if not is_half and float(str(rate)) < LEAST_RATE:
            continue
        others_move = bool(changed) and not is_half
        left, moved = (_left_behind(of), 0.0) if others_move else (of, changed / moving)
        if len(left) and moved < LEAST_MOVED:
            yield _lost(audit, str(model), left, moved, others_move=others_move)
    yield from _lost_averages(audit)


def _left_behind(rows: pd.DataFrame) -> pd.DataFrame:
    """Returns the rows of parameters that did not move while others did, by gradients that are not much smaller."""
    size = rows["gradient_norm"] / rows["numel"] ** 0.5
    has_moved = rows["changed_fraction"] > 0
    is_left: pd.Series = ~has_moved & (size > LEAST_BEHIND * size[has_moved].max())
    return rows[is_left]


def _lost(audit: Audit, model: str, of: pd.DataFrame, moved: float, *, others_move: bool) -> Finding:
    names, dtype, rate = of["name"].tolist(), of["dtype"].iloc[0], of["learning_rate"].iloc[0]
    is_half = dtype in HALF
    whose = listed_names(audit, model, names)
    share = "no element" if not moved else f"only {100 * moved:.2g} % of the elements"
    why = f": {dtype} rounds w - {rate:.2g} * update back to w for the others" if is_half else ""
    clip = next((clip for clip in audit.clips if clip.most < LEAST_LEFT * clip.norm), None)
    advice = LOST if is_half else BEHIND if others_move else NOTHING
    if clip is not None and not others_move:
        why += f"; clip_grad_norm_ clips them from a norm of {clip.norm:.2g} to {clip.most:.2g}"
        why, advice = f"{why}{at_line(audit, clip.source)}", CLIPPED
    return lost_update.finding(
        message=f"The optimizer changes {share} of {whose} though {'its' if len(names) == 1 else 'their'} "
        f"{plural(names, 'gradient')} {'is' if len(names) == 1 else 'are'} not 0{why}",
        advice=advice,
        **about(names, changed_fraction=moved, learning_rate=float(rate)),
    )


def _lost_averages(audit: Audit) -> Iterator[Finding]:
    """Returns findings of averages of weights that do not follow them: rounding takes each update back."""
    groups: dict[tuple[str, str, object], list[Average]] = {}
    for one in audit.averages:
        is_off = one.off >= LEAST_MOVED * one.numel and audit.ops["phase"].iloc[one.op_id] != "optimizer"
        if is_off and one.moved < LEAST_MOVED * one.off and not _is_copy(audit, one.op_id):
            groups.setdefault((one.model, one.dtype, audit.ops["source"].iloc[one.op_id]), []).append(one)
    for (model, dtype, source), of in groups.items():
        names = [one.name for one in of]
        moved = sum(one.moved for one in of) / sum(one.off for one in of)
        share = "no element" if not moved else f"only {100 * moved:.2g} % of the elements"
        message = (
            f"The average of {listed_names(audit, model, names)} does not follow: its updates{at_line(audit, source)} "
            f"move {share} that {'is' if not moved else 'are'} off: {dtype} rounds them back"
        )
        row = audit.ops.iloc[of[0].op_id]
        place = {"op_id": of[0].op_id, "phase": row["phase"]}
        found = lost_update.finding(message, AVERAGE, **place, **about(names, changed_fraction=moved))
        yield replace(found, source=row["source"], source_text=audit.texts.get(row["source"]))


def _is_copy(audit: Audit, op_id: int) -> bool:
    """Returns whether an update copies what was not computed from the values before, such as an average in float32."""
    ops, tensors = audit.ops, audit.tensors
    if not str(ops["op"].iloc[op_id]).split(".")[-1].startswith("copy_"):
        return False
    at = tensors[tensors["op_id"].isin(ops["op_id"][ops["phase"] == "other"])]
    made = at[(at["role"] == "output") & (at["op_id"] < op_id)]
    read, rows = at[at["role"] == "input"], at[at["op_id"].isin(ops["op_id"][ops["parent_id"].isin([op_id])])]
    written = {*rows["storage_id"][rows["role"] == "output"].dropna()}
    new = sources = {*rows["storage_id"].dropna()} - written
    while new:
        makers = made["op_id"][made["storage_id"].isin(new)]
        new = {*read["storage_id"][read["op_id"].isin(makers)].dropna()} - sources
        sources = sources | new
    return not sources & written


@rule("error", rank=80)
def stale_cast(audit: Audit) -> Iterator[Finding]:
    """A step reads the cast of a weight that a block of autocast around several steps made before the optimizer moved
    the weight; with the line of the block if it is known.
    """
    for model in dict.fromkeys(model for model, _ in audit.stale_casts):
        names = [name for of, name in audit.stale_casts if of == model]
        source = audit.autocast_source
        message = (
            f"The step reads a cast of {listed_names(audit, model, names)} from before the optimizer's step: the block "
            f"of torch.autocast around the steps{at_line(audit, source)} keeps the casts that it made first"
        )
        text = audit.texts.get(source or "")
        yield stale_cast.finding(message, BLOCK, source=source, source_text=text, **about(names))


@rule("warning", "hint", rank=60, verbs=("opaudit", "audit"))
def skipped_step(audit: Audit) -> Iterator[Finding]:
    """A GradScaler skips a step: a warning where it skips 5 and does none, or with a scale of 1 or less."""
    for optimizer in dict.fromkeys(skip.optimizer for skip in audit.skips):
        skips = [skip for skip in audit.skips if skip.optimizer == optimizer]
        rows = audit.trained
        bad = rows[(rows["gradient"] == "non_finite") & (rows["skipped_steps"].fillna(0) > 0)]
        scales = [skip.scale for skip in skips if skip.scale is not None]
        is_wrong = (not audit.steps and len(skips) >= SKIPS_EXPECTED) or any(scale <= 1 for scale in scales)
        of = f"all {len(skips)}" if not audit.steps else f"{len(skips)} of {len(audit.skips) + audit.steps}"
        steps = "the step" if of == "all 1" else f"{of} optimizer steps"
        named = "; ".join(listed_names(audit, model, names) for model, names in by_model(bad))
        why = f": NaN or Inf is in the {plural(bad['name'].tolist(), 'gradient')} of {named}" if named else ""
        scale = f" (scale {scales[0]:g}{f' to {scales[-1]:g}' if len(scales) > 1 else ''})" if scales else ""
        yield skipped_step.finding(
            severity="warning" if is_wrong else "hint",
            message=f"GradScaler skips {steps} of {optimizer}{scale}{why}",
            advice=SKIPPED if is_wrong else f"Nothing, if it is one of the first steps of training. {SKIPPED}",
            step=skips[0].step,
            count=len(skips),
            evidence={"scales": scales, "parameters": bad["name"].tolist()},
        )


@rule("hint", rank=270)
def parted_copy(audit: Audit) -> Iterator[Finding]:
    """Two trained parameters were equal when the recording began and are no more: embedding and head, or the same of
    two models.
    """
    for key in dict.fromkeys((copy.model, copy.other_model) for copy in audit.copies):
        pairs = [copy for copy in audit.copies if (copy.model, copy.other_model) == key]
        names, others = [pair.name for pair in pairs], [pair.other_name for pair in pairs]
        model, other = key
        if model == other:
            what = f"{listed_names(audit, model, names)} and {listed_names(audit, other, others)}"
        else:
            what = f"{some(names)} of {model} and {other}"
        yield parted_copy.finding(
            message=f"{what} had equal values when the recording began, and differ at its end: each is trained on "
            "its own",
            advice=TIE if model == other else SYNC,
            parameter=names[0] if len(names) == 1 else None,
            count=len(pairs),
            evidence={"parameters": names, "others": others},
        )
