"""Judges parameters that stand still: frozen, with a learning rate of 0, without gradient since, reset in the step."""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from nbkit.findings.finding import Finding, at_ops, counting, rule
from nbkit.findings.training.facts import Audit, History, at_line
from nbkit.findings.training.names import about, by_model, listed_names, plural, some
from nbkit.ops.families import DRAWS, OVERWRITING
from nbkit.ops.names import packet_of

# The first step of a warm-up and the last of a schedule may have a rate of 0.
STEPS_AT_ZERO = 2
FROZEN = (
    "If they are to be trained, call requires_grad_(True); else leave them out of the optimizer, so that it says so."
)
FREEZE = "Call requires_grad_(False) of the module or of each parameter: model.features.requires_grad_(False)."
LATE = "Freeze before the optimizer is made and before the first step, and check when the schedule freezes."
RATE = (
    "Look at the schedule: integer division, epochs counted where it is stepped for each batch, too few steps in all."
)
ONCE = "Step it once for each step of the optimizer. Nothing, if its length counts these steps (of processes, samples)."
STOPPED = (
    "Look what changed after that step: a branch that no longer runs, requires_grad, a compiled graph that is stale."
)


@rule("hint", rank=220)
def frozen_parameter(audit: Audit) -> Iterator[Finding]:
    """An optimizer holds a parameter with `requires_grad=False`, or moved it before that."""
    rows = audit.trained
    rows = rows[~rows["requires_grad"] & (rows["optimizer_steps"].fillna(0) > 0)]
    still = rows[(rows["changed_fraction"].fillna(0) == 0).to_numpy(dtype=bool)]
    moved = rows.drop(still.index)
    for model, names in by_model(still):
        all_of = audit.trained[audit.trained["model"] == model]
        share = float(still["numel"][still["model"] == model].sum() / all_of["numel"].sum())
        verb = "has" if len(names) == 1 else "have"
        yield frozen_parameter.finding(
            message=f"The optimizer holds {listed_names(audit, model, names)}, which {verb} requires_grad=False "
            f"and never {'moves' if len(names) == 1 else 'move'}: {100 * share:.2g} % of the elements of {model}",
            advice=FROZEN,
            **about(names, share=share),
        )
    yield from (_late(audit, model, names) for model, names in by_model(moved))


def _late(audit: Audit, model: str, names: list[str]) -> Finding:
    is_one = len(names) == 1
    return frozen_parameter.finding(
        message=f"The optimizer changes {listed_names(audit, model, names)}, though "
        f"{'it is' if is_one else 'they are'} frozen at the end (requires_grad=False)",
        advice=LATE,
        **about(names),
    )


@rule("warning", rank=225)
def ineffective_freeze(audit: Audit) -> Iterator[Finding]:
    """Parameters are trained that were to be frozen: `require_grad = False`, an attribute of that name, freezes
    nothing, nor does `requires_grad = False` of a module.
    """
    moved = audit.trainable[audit.trainable["changed_fraction"].fillna(0) > 0]
    for model, attribute in dict.fromkeys((one.model, one.attribute) for one in audit.misnamed):
        alike = [one for one in audit.misnamed if (one.model, one.attribute) == (model, attribute)]
        held = {name for one in alike for name in one.names}
        names = [name for name in moved["name"][moved["model"] == model] if name in held]
        if not names:
            continue
        of = "their module" if attribute == "requires_grad" else "parameters"
        why = "torch does not look at that" if attribute == "requires_grad" else "no attribute that torch knows"
        yield ineffective_freeze.finding(
            f"The optimizer trains {listed_names(audit, model, names)}, though {attribute} = False was set for {of}: "
            f"{why}, and {'it is' if len(names) == 1 else 'they are'} not frozen",
            FREEZE,
            module=alike[0].module if len(alike) == 1 else None,
            **about(names),
        )


@rule("warning", "hint", rank=240)
def zero_rate(audit: Audit) -> Iterator[Finding]:
    """The learning rate is exactly 0 at the last two steps or more; a warning where it is so of all parameters at all
    of two steps or more.

    All of them at all steps is hardly meant; a group may be held still, and a schedule may end.
    """
    rows = audit.trainable
    rows = rows[(rows["gradient"] == "finite").to_numpy(dtype=bool, na_value=False)]
    groups: dict[tuple[str, int, int], list[str]] = {}
    for model, name in zip(rows["model"], rows["name"], strict=True):
        history = audit.histories.get((model, name))
        count = 0 if history is None else _zeros_at_end(history)
        if history is not None and count >= STEPS_AT_ZERO:
            groups.setdefault((model, count, len(history.rates)), []).append(name)
    for (model, count, steps), names in groups.items():
        since = steps - count
        when = f"from step {since} on, at {count} of {steps} steps" if since else f"at all {steps} steps"
        yield zero_rate.finding(
            severity="warning" if count == steps and len(names) == len(rows) else "hint",
            message=f"The learning rate of {listed_names(audit, model, names)} is exactly 0 {when}: nothing is "
            "learned there",
            advice=RATE,
            step=steps - count,
            **about(names, steps=count),
        )


@rule("hint", rank=250)
def repeated_schedule(audit: Audit) -> list[Finding]:
    """A scheduler steps several times in a row, as often after each of two or more steps of its optimizer."""
    return [
        repeated_schedule.finding(
            message=f"{one.type} takes {one.times} steps in a row for each step of {one.optimizer}"
            f"{at_line(audit, one.source)}: {one.early.format(one.times)}",
            advice=ONCE,
            count=one.steps,
            source=one.source,
        )
        for one in audit.schedules
        if one.times > 1
    ]


def _zeros_at_end(history: History) -> int:
    """Returns how many steps at the end had a rate of 0."""
    number = 0
    for rate in reversed(history.rates):
        if rate != 0:
            break
        number += 1
    return number


@rule("hint", rank=230)
def stopped_gradient(audit: Audit) -> list[Finding]:
    """A parameter gets a gradient at the first steps, and none at two or more that follow.

    Branches may take turns, so that it is a hint, and only where there are as many steps without as a turn of two has.
    """
    rows = audit.trainable
    groups: dict[tuple[str, int, int], list[str]] = {}
    for model, name in zip(rows["model"], rows["name"], strict=True):
        gradients = audit.histories.get((model, name), History((), ())).gradients
        had = sum(gradients)
        if 0 < had <= len(gradients) - STEPS_AT_ZERO and all(gradients[:had]):
            groups.setdefault((model, had, len(gradients)), []).append(name)
    return [_stopped(audit, model, names, had, steps) for (model, had, steps), names in groups.items()]


def _stopped(audit: Audit, model: str, names: list[str], had: int, steps: int) -> Finding:
    first = "at the first step" if had == 1 else f"at the first {had} steps"
    return stopped_gradient.finding(
        message=f"{listed_names(audit, model, names)} {'gets a' if len(names) == 1 else 'get'} "
        f"{plural(names, 'gradient')} {first}, and none at the {steps - had} that follow",
        advice=STOPPED,
        step=had,
        **about(names, steps=steps - had),
    )


@rule("hint", rank=260)
def reset_parameter(audit: Audit) -> list[Finding]:
    """A line fills a trained parameter with random numbers."""
    ops, tensors = audit.ops, audit.tensors
    drawing = ops[ops["op"].map(packet_of).isin(DRAWS & OVERWRITING) & (ops["phase"] != "optimizer")]
    rows = tensors[tensors["op_id"].isin(drawing["op_id"]) & (tensors["role"] == "output")]
    rows = rows[rows["name"].isin(set(audit.trainable["name"])) & ~rows["storage_id"].isin(_made_here(tensors))]
    lines = ops["source"].to_numpy(object)[rows["op_id"].to_numpy(dtype=np.int64)]
    return [_reset(audit, of) for _, of in rows.groupby(lines, sort=False, dropna=False)]


def _made_here(tensors: pd.DataFrame) -> set[int]:
    """Returns the memories that ops of the recording made, as of a model that is made in it."""
    known = tensors.dropna(subset="storage_id")
    first = {role: rows.groupby("storage_id")["op_id"].min() for role, rows in known.groupby("role")}
    made, read = first.get("output"), first.get("input")
    if made is None:
        return set()
    earlier = pd.Series(np.inf, made.index) if read is None else read.reindex(made.index).fillna(np.inf)
    return set(made.index[made < earlier].astype(int))


def _reset(audit: Audit, of: pd.DataFrame) -> Finding:
    counts = of["name"].value_counts(sort=False)
    names = counts.index.tolist()
    most = int(counts.max())
    times = "" if most == 1 else f", {'up to ' if counts.nunique() > 1 else ''}{most} times"
    finding = reset_parameter.finding(
        message=f"{some(names)} {'is' if len(names) == 1 else 'are'} filled with random numbers in the "
        f"step{times}: what was learned, or loaded, is lost",
        advice="Initialize each parameter once, when the model is made, before weights are loaded.",
        **about(names),
    )
    return counting(at_ops(finding, audit.ops, of["op_id"].astype(int).tolist(), audit.texts), len(names))
