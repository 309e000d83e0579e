"""Which of many steps stand out, and what is said of them."""

import math

import pytest
import torch

from nbkit.findings.steps.anomalies import WINDOW, AnomalyJudge, is_jump, step_findings
from nbkit.schema import PARAMETERS, STEPS

NAN, INF = math.nan, math.inf


def steps(losses, **columns):
    """The frame of steps with these losses, as they were judged one after the other."""
    judge, rows = AnomalyJudge(), []
    for number, loss in enumerate(losses):
        row = {"step": number, "loss": loss, "gradient_norm": 1.0, "optimizer_steps": 1, "skipped_steps": 0}
        row |= {"wall_us": 1.0, "error": None} | {name: values[number] for name, values in columns.items()}
        rows.append({**row, "anomaly": judge.judge(row)})
    return STEPS.frame(rows)


def said(frame, parameters=None):
    found = step_findings(frame, PARAMETERS.frame() if parameters is None else parameters)
    return [(one.rule, one.severity, one.step, one.message) for one in found]


USUAL = [2.0, 1.8, 1.9, 1.6, 1.7, 1.5]


def test_a_loss_that_jumps_is_said_with_what_is_usual():
    frame = steps([*USUAL, 34.0, 1.4])
    assert frame["anomaly"].dropna().to_dict() == {6: "loss_spike"}
    assert said(frame) == [
        (
            "loss_spike",
            "warning",
            6,
            "The loss jumps to 34 in step 6, 19 times the median of the steps before it (1.75)",
        )
    ]


@pytest.mark.parametrize(
    ("before", "loss", "jumps"),
    [
        (USUAL, 17.5, True),
        (USUAL, 17.4, False),  # 10 times the median of 1.75
        ([*USUAL, 9.0], 26.9, False),  # 3 times the largest
        ([*USUAL, 9.0], 27.0, True),
        ([1.0] * 4, 100.0, False),  # too few
        ([1.0] * 5, 100.0, True),
        ([1.0, -1.0, *[1.0] * 5], 100.0, False),  # a reward or a log-likelihood has no zero
        ([-1.0, *[1.0] * 20], 100.0, True),  # long ago
        ([1.0, *[1e-4] * 25], 0.49, False),  # small beside the first
        ([1.0, *[1e-4] * 25], 0.5, True),
        ([0.0, *[1.0] * 19], 100.0, False),
    ],
)
def test_what_a_jump_is(before, loss, jumps):
    assert is_jump(before[-WINDOW:], loss, before[0]) is jumps


@pytest.mark.parametrize(("value", "word"), [(NAN, "NaN"), (INF, "Inf"), (-INF, "Inf")])
def test_the_first_loss_that_is_not_finite_is_an_error(value, word):
    assert said(steps([2.0, value, value])) == [
        ("loss_not_finite", "error", 1, f"The loss is {word} from step 1 on, after 1 step in which it is finite")
    ]
    assert said(steps([2.0, 1.0, value, 1.0])) == [
        ("loss_not_finite", "error", 2, f"The loss is {word} in step 2, after 2 steps in which it is finite")
    ]
    assert said(steps([value])) == [("loss_not_finite", "error", 0, f"The loss is {word} in step 0")]


def test_a_loss_that_becomes_finite_and_then_not_is_said_twice():
    assert [step for _, _, step, _ in said(steps([NAN, 1.0, NAN, NAN]))] == [0, 2]


def test_gradients_that_are_not_finite_are_an_error_unless_a_scaler_skips_the_step():
    assert said(steps([1.0, 1.0], gradient_norm=[1.0, NAN])) == [
        (
            "gradient_not_finite",
            "error",
            1,
            "The norm of the gradients is NaN in step 1, after 1 step in which it is finite",
        )
    ]
    assert said(steps([1.0, 1.0], gradient_norm=[1.0, NAN], skipped_steps=[0, 1])) == []


def test_a_step_that_raised_stands_out_and_is_said_by_its_recording():
    frame = steps([1.0, None], error=[None, "ValueError"], gradient_norm=[1.0, None])
    assert frame["anomaly"].tolist()[1] == "failed"
    assert said(frame) == []


def test_skipped_steps_are_a_warning_once_they_are_many_and_most():
    few, many = [1] * 19 + [0], [1] * 20 + [0]
    assert said(steps([1.0] * 20, skipped_steps=few, optimizer_steps=[1 - one for one in few])) == []
    bad = PARAMETERS.frame(
        [
            {"model": "Net", "name": name, "kind": "parameter", "module": "", "shape": "[1]", "numel": 1}
            | {"dtype": "float32", "device": "cpu", "requires_grad": True, "gradient": gradient}
            for name, gradient in (("a", "non_finite"), ("b", "finite"), ("c", "non_finite"))
        ]
    )
    frame = steps([1.0] * 21, skipped_steps=many, optimizer_steps=[1 - one for one in many])
    assert said(frame, bad) == [
        (
            "skipped_step",
            "warning",
            0,
            "GradScaler skips 20 of 21 optimizer steps: NaN or Inf is in the gradients of a of Net, c of Net each time",
        )
    ]
    mostly_done = [1] * 20 + [0] * 20
    assert said(steps([1.0] * 40, skipped_steps=mostly_done, optimizer_steps=[1 - one for one in mostly_done])) == []


def rates(schedule, calls=1, count=30, most=0.1):
    """The frame of steps whose learning rate a scheduler of torch's sets, called so often behind each step."""
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=most)
    scheduler, found = schedule(optimizer), []
    for _ in range(count):
        found.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        for _ in range(calls):
            scheduler.step()
    return steps([1.0] * count, learning_rate=found)


def cosine(optimizer):
    return torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=40)


def test_a_schedule_that_is_stepped_more_often_than_the_optimizer_is_told_where_it_ends():
    assert said(rates(cosine, calls=4)) == [
        (
            "past_schedule",
            "hint",
            10,
            "The learning rate falls from 0.1 to 0 by step 10 and rises again: its schedule is over there",
        )
    ]
    assert said(rates(cosine)) == []


@pytest.mark.parametrize(
    "schedule",
    [
        lambda o: torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(o, T_0=10),
        lambda o: torch.optim.lr_scheduler.OneCycleLR(o, max_lr=0.1, total_steps=31),
        lambda o: torch.optim.lr_scheduler.CyclicLR(o, base_lr=0.01, max_lr=0.1, step_size_up=5),
        lambda o: torch.optim.lr_scheduler.LinearLR(o, 1e-4, total_iters=10),
        lambda o: torch.optim.lr_scheduler.StepLR(o, 5, gamma=0.01),
    ],
    ids=["restarts", "one cycle", "cyclic", "warm-up", "steps"],
)
def test_schedules_as_they_are_meant_are_not_told(schedule):
    assert said(rates(schedule)) == []
