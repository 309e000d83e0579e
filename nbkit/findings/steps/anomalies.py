"""Judges which of many training steps are anomalous: results that are not finite, and losses that jump."""

import json
import math
from collections import deque
from collections.abc import Collection
from statistics import median

import pandas as pd

from nbkit import units
from nbkit.findings.finding import Finding, rule
from nbkit.findings.training.names import some
from nbkit.findings.training.over_steps.untrained import no_step
from nbkit.findings.training.updates import skipped_step

# So many steps before one tell what is usual.
WINDOW, FEWEST = 20, 5
# Rows of a batch that a message names.
MOST_ROWS = 16
# A jump: so many times the median of those, and so many times the largest.
OF_MEDIAN, OF_LARGEST = 10.0, 3.0
# A loss that has become small may jump without harm: one that is less than this share of the first is no finding.
OF_FIRST = 0.5
LOSS_NOT_FINITE, GRADIENT_NOT_FINITE, LOSS_JUMPS = "loss_not_finite", "gradient_not_finite", "loss_spike"
FAILED = "failed"
NOT_FINITE = "The findings of this step name the op where the NaN or Inf begins."
NOT_FINITE_OF = {LOSS_NOT_FINITE: ("loss", "loss"), GRADIENT_NOT_FINITE: ("gradient_norm", "norm of the gradients")}
# A GradScaler begins with a scale that is too large, and halves it with each step that it skips.
MOST_SKIPS = 20
SKIPPED = "A smaller scale does not mend it: the findings name the op where the NaN or Inf begins."
# More backward passes than that are seldom summed for one step.
FEWEST_WITHOUT = 20
NEVER_STEPPED = "Call optimizer.step() after backward()."
SPIKE = (
    "Look at the batch of this step. Clip the gradients (torch.nn.utils.clip_grad_norm_): one such step spoils the "
    "optimizer's running means for many more."
)


# A rate that is 0 for all it does: this share of the largest, between so many steps of falling and of rising.
OF_RATE, SLOW = 1e-3, 3
PAST = (
    "Call scheduler.step() once for each step of the optimizer, and give the schedule as many steps as the training "
    "has (T_max). If the rate is to rise again, this is as it should be."
)


class AnomalyJudge:
    """Judges steps one after the other, by the rows of the frame `steps`."""

    def __init__(self) -> None:
        self.recent: deque[float] = deque(maxlen=WINDOW)
        self.first: float | None = None
        self.was_finite = True

    def judge(self, row: dict[str, object]) -> str | None:
        """Returns what is anomalous about the next step, null if nothing is; of results that stay NaN the first."""
        if row["error"] is not None:
            return FAILED
        loss, norm = row["loss"], row["gradient_norm"]
        skipped = bool(row["skipped_steps"])
        found = None
        if isinstance(loss, float) and not math.isfinite(loss):
            found = LOSS_NOT_FINITE
        elif isinstance(norm, float) and not math.isfinite(norm) and not skipped:
            found = GRADIENT_NOT_FINITE
        if found is not None:
            is_first, self.was_finite = self.was_finite, False
            return found if is_first else None
        self.was_finite = True
        if isinstance(loss, float):
            self.first = loss if self.first is None else self.first
            jumps = is_jump(self.recent, loss, self.first)
            self.recent.append(loss)
            return LOSS_JUMPS if jumps else None
        return None


def is_jump(recent: Collection[float], loss: float, first: float) -> bool:
    """Returns whether a loss stands out from those of the steps right before it, all of which are positive."""
    if len(recent) < FEWEST or loss < OF_LARGEST * max(recent) or min(recent) <= 0:
        return False
    return loss >= OF_MEDIAN * median(recent) and loss >= OF_FIRST * abs(first)


def step_findings(steps: pd.DataFrame, parameters: pd.DataFrame) -> list[Finding]:
    """Returns what the frame `steps` shows: a finding for each anomalous step but those that raised, and skipped ones.

    `parameters` are those of one of the steps.
    """
    findings = []
    for at in steps.index[steps["anomaly"].notna()]:
        kind = str(steps["anomaly"].loc[at])
        if kind == LOSS_JUMPS:
            findings += loss_spike(steps, at)
        elif kind in NOT_FINITE_OF:
            findings += not_finite(steps, at, kind)
    return [*findings, *_skipped(steps, parameters), *past_schedule(steps)]


def never_stepped(steps: pd.DataFrame) -> list[Finding]:
    """Returns a finding where backward passes ran in so many steps that one of an optimizer was to come."""
    count = int(steps["loss"].notna().sum())
    if count < FEWEST_WITHOUT or steps["optimizer_steps"].any() or steps["skipped_steps"].any():
        return []
    message = f"No optimizer steps in any of {units.counted(len(steps), 'step')}, and its parameters stay as they were"
    return [no_step.finding(message, NEVER_STEPPED, severity="warning", count=count)]


@rule("hint")
def past_schedule(steps: pd.DataFrame) -> list[Finding]:
    """The learning rate falls to a thousandth of its largest value or less, step by step, and rises from there as
    slowly.
    """
    rates = steps["learning_rate"].dropna()
    values, numbers = rates.tolist(), steps["step"].loc[rates.index].tolist()
    for at in range(SLOW, len(values) - SLOW):
        most, falls, rises = max(values[:at]), values[at - SLOW : at + 1], values[at : at + SLOW + 1]
        if values[at] > OF_RATE * most or falls != sorted(set(falls), reverse=True) or rises != sorted(set(rises)):
            continue
        if rises[1] < most / 2:  # a restart jumps
            fall = f"from {most:.3g} to {values[at]:.3g} by step {numbers[at]}"
            message = f"The learning rate falls {fall} and rises again: its schedule is over there"
            evidence = {"learning_rate": values[at]}
            return [past_schedule.finding(message, PAST, step=numbers[at], evidence=evidence)]
    return []


@rule("warning")
def loss_spike(steps: pd.DataFrame, at: int) -> list[Finding]:
    """The loss of a step is 10 times the median and 3 times the largest of up to 20 steps before it (5 at least, all
    positive), and at least half of the first.
    """
    number, loss = int(steps["step"].loc[at]), float(steps["loss"].loc[at])
    usual = median(steps["loss"].loc[: at - 1].dropna().tolist()[-WINDOW:])
    message = (
        f"The loss jumps to {loss:.3g} in step {number}, {loss / usual:,.0f} times the median of the steps before it "
        f"({usual:.3g})"
    )
    rows, told = _batch_of(steps, at)
    evidence = {"loss": loss, "usual": usual, **({"batch": rows} if rows else {})}
    return [loss_spike.finding(message + told, SPIKE, step=number, evidence=evidence)]


def _batch_of(steps: pd.DataFrame, at: int) -> tuple[list[int], str]:
    """Returns the rows of the data set that a DataLoader gave a step, and what is said of them."""
    text = steps["batch"].loc[at]
    rows: list[int] = json.loads(text) if isinstance(text, str) else []
    named = ", ".join(map(str, rows[:MOST_ROWS])) + (" ..." if len(rows) > MOST_ROWS else "")
    return rows, f". The batch that a DataLoader gave last has the rows {named} of its data set" if rows else ""


@rule("error", names=(LOSS_NOT_FINITE, GRADIENT_NOT_FINITE))
def not_finite(steps: pd.DataFrame, at: int, kind: str) -> list[Finding]:
    """The loss, or the norm of the gradients, becomes NaN or Inf in this step of a script."""
    number = int(steps["step"].loc[at])
    column, what = NOT_FINITE_OF[kind]
    value = "NaN" if math.isnan(steps[column].loc[at]) else "Inf"
    since = f", after {units.counted(at, 'step')} in which it is finite" if at else ""
    when = f"from step {number} on" if _stays(steps, at, column) else f"in step {number}"
    message = f"The {what} is {value} {when}{since}"
    rows, told = _batch_of(steps, at)
    measured = {name: steps[name].loc[at] for name in ("loss", "gradient_norm")} | ({"batch": rows} if rows else {})
    return [not_finite.finding(message + told, NOT_FINITE, name=kind, step=number, evidence=measured)]


def _skipped(steps: pd.DataFrame, parameters: pd.DataFrame) -> list[Finding]:
    """Returns one finding of steps that a GradScaler skips far more often than while it looks for its scale."""
    skipped, done = int(steps["skipped_steps"].sum()), int(steps["optimizer_steps"].sum())
    if skipped < MOST_SKIPS or skipped <= done:
        return []
    all_of = "all" if not done else f"{skipped:,} of"
    bad = parameters[(parameters["gradient"] == "non_finite").to_numpy(dtype=bool, na_value=False)]
    names = [f"{name} of {model}" for name, model in zip(bad["name"], bad["model"], strict=True)]
    where = f"the gradient{'s' if len(names) > 1 else ''} of {some(names)}" if names else "gradients"
    message = f"GradScaler skips {all_of} {skipped + done:,} optimizer steps: NaN or Inf is in {where} each time"
    evidence = {"skipped_steps": skipped, "optimizer_steps": done}
    return [skipped_step.finding(message, SKIPPED, severity="warning", count=skipped, evidence=evidence)]


def _stays(steps: pd.DataFrame, at: int, column: str) -> bool:
    """Returns whether the value is finite in no later step, of which there are some."""
    later = steps[column].loc[at + 1 :]
    return bool(len(later)) and not later.map(math.isfinite).any()
