"""Judges what happens to gradients between the backward pass and the step: cleared too early, clipped too early."""

from collections.abc import Iterator, Sequence

import numpy as np

from nbkit import units
from nbkit.findings.finding import Finding, Rule, rule
from nbkit.findings.training.facts import Audit, Clip
from nbkit.findings.training.names import about, by_model, listed_names

CLEARED = "Call zero_grad() after optimizer.step(), or before backward(); not between them."
TOO_EARLY = "Call them in this order: zero_grad(), backward(), optimizer.step()."
ORDER = "Call backward() first, then clip_grad_norm_, then optimizer.step()."
USED_UP = "Make a list of it once, such as list(model.parameters()), for the optimizer and for clip_grad_norm_."
OTHERS = "Give clip_grad_norm_ the parameters that the optimizer updates."
SCALED = "Call scaler.unscale_(optimizer) between backward() and clip_grad_norm_."
# In one step alone, gradients may be zero for a reason.
FEWEST = 2


@rule("warning", rank=190)
def cleared_gradient(audit: Audit) -> list[Finding]:
    """A backward pass computes gradients, and none is there at any step: `zero_grad()` stands between, or `step()`
    before `backward()`.
    """
    if not audit.steps or audit.idle_steps != audit.steps or (audit.steps == 1 and not audit.ran_before_step):
        return []
    rows = audit.trainable
    reached = reached_parameters(audit)
    keys = zip(rows["model"], rows["name"], strict=True)
    is_reached = np.array([key in reached for key in keys], dtype=bool)
    none = rows[is_reached & (rows["gradient"] == "none").to_numpy(dtype=bool, na_value=False)]
    is_too_early = _steps_before_backward(audit)
    return [
        cleared_gradient.finding(
            message=_too_early(audit, model, of) if is_too_early else _gone(audit, model, of),
            advice=TOO_EARLY if is_too_early else CLEARED,
            **about(of),
        )
        for model, of in by_model(none)
    ]


def _gone(audit: Audit, model: str, names: list[str]) -> str:
    return (
        f"The backward pass computes gradients of {listed_names(audit, model, names)}, which are gone before the "
        "optimizer steps: it changes nothing"
    )


def _too_early(audit: Audit, model: str, names: list[str]) -> str:
    return (
        "The optimizer steps before the backward pass that computes gradients of "
        f"{listed_names(audit, model, names)}, and meets none of them: it changes nothing"
    )


def _steps_before_backward(audit: Audit) -> bool:
    """Returns whether the last thing before each optimizer step is a forward pass, with no backward pass after it."""
    rows = audit.ops[audit.ops["phase"].isin(["forward", "backward"]) & (audit.ops["level"] == "aten")]
    last = rows[rows["step"] < audit.steps].groupby("step")["phase"].last()
    return bool(len(last)) and bool((last == "forward").all())


def reached_parameters(audit: Audit) -> set[tuple[str, str]]:
    """Returns the parameters read by forward ops that a backward pass went through."""
    ops, tensors = audit.ops, audit.tensors
    through = set(ops["forward_op_id"].dropna().astype(int).tolist())
    rows = tensors[(tensors["role"] == "input") & tensors["name"].notna() & tensors["requires_grad"]]
    rows = rows[rows["op_id"].isin(through)]
    models = ops["model"].to_numpy(object)[rows["op_id"].to_numpy()]
    return set(zip(models.tolist(), rows["name"].tolist(), strict=True))


@rule("warning", rank=200)
def early_clipping(audit: Audit) -> list[Finding]:
    """`clip_grad_norm_` clipped nothing at two steps or more, and the optimizer used gradients: it was given no
    parameters (a generator that was used up), others than the optimizer's, or ran before `backward()`; it says which.
    """
    has_used = (audit.trained["gradient"] == "finite").any() and audit.steps > audit.idle_steps
    if not has_used or any(clip.norm != 0 for clip in audit.clips):
        return []
    several = [clips for clips in _by_line(audit.clips) if len(clips) >= FEWEST]
    return [at_clips(early_clipping, clips, *_clips_nothing(clips), scales=_scales(clips)) for clips in several]


@rule("warning", rank=210)
def scaled_clipping(audit: Audit) -> Iterator[Finding]:
    """`clip_grad_norm_` clips gradients that a GradScaler has not unscaled, to less than the loss scale."""
    for clips in _by_line(audit.clips):
        scaled = [clip for clip in clips if (clip.scale or 1.0) > max(1.0, clip.most)]
        if scaled:
            scale = scaled[0].scale or 1.0
            message = (
                f"clip_grad_norm_ clips gradients that are still multiplied by the loss scale of {scale:g}, to a norm "
                f"of {scaled[0].most:g}: after the scale is taken out, {scaled[0].most / scale:.2g} is left"
            )
            yield at_clips(scaled_clipping, scaled, message, SCALED, scales=_scales(scaled))


def _by_line(clips: Sequence[Clip]) -> list[list[Clip]]:
    lines = dict.fromkeys(clip.source for clip in clips)
    return [[clip for clip in clips if clip.source == source] for source in lines]


def _clips_nothing(clips: Sequence[Clip]) -> tuple[str, str]:
    """Returns why no gradient was clipped though the optimizer used some, and what to do."""
    given = units.counted(max(clip.given for clip in clips), "parameter")
    if not any(clip.given for clip in clips):
        why = "it was given no parameters, as from a generator or filter that was used up before"
        return f"clip_grad_norm_ clipped nothing: {why}", USED_UP
    if not any(clip.has_others for clip in clips):
        return "clip_grad_norm_ clipped nothing: it ran before backward(), when no gradient was there yet", ORDER
    whose = "without gradients" if any(clip.is_updated for clip in clips) else "that no optimizer updates"
    return f"clip_grad_norm_ clipped nothing: it was given {given} {whose}, while others had gradients", OTHERS


def _scales(clips: Sequence[Clip]) -> list[float | None]:
    return [clip.scale for clip in clips]


def at_clips(of: Rule, clips: Sequence[Clip], message: str, advice: str, **evidence: object) -> Finding:
    """Returns a finding at the line of clippings, with their norms as evidence."""
    return of.finding(
        message=message,
        advice=advice,
        step=clips[0].step,
        source=clips[0].source,
        source_text=clips[0].source_text,
        count=len(clips),
        evidence={"norms": [clip.norm for clip in clips], **evidence},
    )
