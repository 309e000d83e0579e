"""Weight decay that some norms and biases are kept from, and others are not."""

import json

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import nbkit


def found(is_free):
    """What is found where `is_free` says of a parameter's name and itself that it is not decayed."""
    model = nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8), nn.ReLU(), nn.Linear(8, 4))
    free = [one for name, one in model.named_parameters() if is_free(name, one)]
    others = [one for name, one in model.named_parameters() if not is_free(name, one)]
    groups = [{"params": others, "weight_decay": 0.1}, {"params": free, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW([group for group in groups if group["params"]], 1e-3)
    with nbkit.opaudit() as trace:
        F.cross_entropy(model(torch.randn(8, 8)), torch.arange(8) % 4).backward()
        optimizer.step()
    return [*trace.findings[trace.findings["rule"] == "decayed_norm"].itertuples()]


def test_a_norm_that_its_name_leaves_among_the_decayed_is_a_hint():
    (finding,) = found(lambda name, _: name.endswith("bias") or "LayerNorm" in name)
    assert (finding.severity, finding.parameter) == ("hint", "1.weight")
    assert json.loads(finding.evidence)["free"] == ["0.bias", "1.bias", "3.bias"]
    assert finding.message == (
        "1.weight is decayed by 0.1, though 3 other norms and biases of Sequential are kept from weight decay"
    )


@pytest.mark.parametrize(
    "is_free",
    [lambda _, one: one.dim() < 2, lambda *_: False, lambda *_: True, lambda name, _: name == "3.weight"],
    ids=["by shape", "all decayed", "none decayed", "a matrix"],
)
def test_groups_that_treat_them_alike_are_right(is_free):
    assert found(is_free) == []


def rates_of(schedule, first=(1e-5, 1e-2), steps=4):
    """What is found of the rates of two groups; `schedule` is given the optimizer and the number of the step."""
    model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 4))
    groups = [{"params": model[at].parameters(), "lr": rate} for at, rate in zip((0, 2), first, strict=True)]
    optimizer = torch.optim.AdamW(groups)
    with nbkit.opaudit() as trace:
        for step in range(steps):
            F.cross_entropy(model(torch.randn(8, 8)), torch.arange(8) % 4).backward()
            optimizer.step()
            optimizer.zero_grad()
            schedule(optimizer, step)
    return [*trace.findings[trace.findings["rule"] == "merged_rates"].itertuples()]


def one_rate(optimizer, step):
    for group in optimizer.param_groups:
        group["lr"] = 1e-3 * (step + 1)


def test_one_rate_for_groups_that_began_with_their_own_is_a_hint():
    (finding,) = rates_of(one_rate)
    assert (finding.severity, finding.step, finding.count) == ("hint", 1, 2)
    assert json.loads(finding.evidence)["rates"] == pytest.approx([1e-3, 2e-3, 3e-3])
    assert finding.message == (
        "The learning rate of each group of AdamW is its own at step 0, from 1e-05 to 0.01, and all have one from step "
        "1 on: 0.001 there, 100 times as much as 0 (2 tensors) had"
    )


def halved(optimizer, step):
    for group in optimizer.param_groups:
        group["lr"] *= 0.5


def together_at_the_end(optimizer, step):
    for group in optimizer.param_groups:
        group["lr"] = 1e-4 if step > 1 else group["lr"] / 2


@pytest.mark.parametrize(
    "options",
    [
        {"schedule": halved},
        {"schedule": one_rate, "first": (1e-3, 1e-3)},
        {"schedule": one_rate, "first": (0.0, 1e-3)},
        {"schedule": one_rate, "steps": 3},
        {"schedule": together_at_the_end},
    ],
    ids=["a schedule", "alike from the beginning", "held still at first", "too few steps", "together at the end"],
)
def test_rates_that_stay_apart_or_were_alike_are_right(options):
    assert rates_of(**options) == []
