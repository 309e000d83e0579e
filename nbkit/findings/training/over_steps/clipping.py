"""Judges when gradients are clipped: after the step that was to use them, or sums of several passes in between."""

from collections.abc import Iterator, Sequence

from nbkit.findings.finding import Finding, rule
from nbkit.findings.training.facts import Audit, Clip
from nbkit.findings.training.over_steps.cleared import at_clips

FEWEST = 2
ORDER = "Call clip_grad_norm_ between backward() and optimizer.step()."
ONCE = (
    "Clip once for each step: after the last of its backward passes, before optimizer.step(). Nothing, if each part is "
    "to be bounded by itself, but then no part may be in the sum when the next one is clipped."
)


@rule("warning", rank=202)
def late_clipping(audit: Audit) -> Iterator[Finding]:
    """`clip_grad_norm_` clips gradients that the optimizer has read already, at two steps or more, and no step uses
    what is left of them.
    """
    for clips in _alike([one for one in audit.clips if one.norm > 0]):
        late = [one for one in clips if one.norm > one.most]
        is_anew = len({one.passes for one in clips}) == len(clips)
        if len(late) >= FEWEST and all(one.is_late for one in clips) and is_anew:
            message = (
                f"clip_grad_norm_ runs after the step of {_whose(audit)}, which has read the gradients before: it "
                f"clips them from a norm of up to {max(one.norm for one in late):.3g} to {late[0].most:g} at "
                f"{len(late)} steps, and no step uses that"
            )
            yield at_clips(late_clipping, late, message, ORDER, most=late[0].most)


@rule("hint", rank=204)
def partial_clipping(audit: Audit) -> Iterator[Finding]:
    """`clip_grad_norm_` clips the gradients of several backward passes before all of them are there: a line runs it
    between two of them, and again before the same step.
    """
    for clips in _alike([one for one in audit.clips if one.norm > 0 and one.is_updated and not one.is_late]):
        steps = [[one for one in clips if one.step == step] for step in dict.fromkeys(one.step for one in clips)]
        found = [of for of in steps if _is_partial(audit, of)]
        if not found or 2 * len(found) < len(steps):
            continue
        early = [one for of in found for one in of[:-1] if one.norm > one.most]
        message = (
            f"clip_grad_norm_ runs {len(found[0])} times for one step of {_whose(audit)}, each time after a backward "
            f"pass that adds to the gradients: it clips sums that are not complete, from a norm of up to "
            f"{max(one.norm for one in early):.3g} to {early[0].most:g}, so that the first passes count for less"
        )
        several = [one for of in found for one in of]
        yield at_clips(partial_clipping, several, message, ONCE, most=several[0].most)


def _is_partial(audit: Audit, clips: Sequence[Clip]) -> bool:
    """Returns whether clippings of one step work on a sum that grows from one to the next, and change it."""
    passes = [one.passes for one in clips]
    between = audit.passes[passes[0] - 1 : passes[-1] - 1]
    is_sum = passes[0] > 0 and not any(one.is_cleared for one in between)
    return len({*passes}) == len(clips) > 1 and is_sum and any(one.norm > one.most for one in clips[:-1])


def _alike(clips: Sequence[Clip]) -> list[list[Clip]]:
    """Returns the clippings of each line, of each set of parameters."""
    keys = dict.fromkeys((one.source, one.whose) for one in clips)
    return [[one for one in clips if (one.source, one.whose) == key] for key in keys]


def _whose(audit: Audit) -> str:
    return audit.optimizers[0] if len(audit.optimizers) == 1 else "the optimizer"
