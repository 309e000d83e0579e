"""Losses of reinforcement learning: what is named, and right steps."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tests.findings.dataflow.steps import found

POLICY, VALUE = nn.Linear(6, 4), nn.Linear(6, 1)
STATES, AFTER, ACTIONS, REWARDS = torch.randn(20, 6), torch.randn(20, 6), torch.randint(0, 4, (20, 1)), torch.rand(20)
GOING = torch.randint(0, 2, (20,)).float()


def ratio():
    return POLICY(STATES).log_softmax(-1).gather(1, ACTIONS).squeeze(1).exp()


def standardized(change):
    advantages = change(REWARDS * 1.0)
    (ratio() * advantages).mean().backward()


DIVIDED = {
    "as advantages": lambda: standardized(lambda x: x - x.mean() / (x.std() + 1e-8)),
    "no epsilon": lambda: standardized(lambda x: x - x.mean() / x.std()),
    "by the root of the variance": lambda: standardized(lambda x: x - x.mean() / (x.var() + 1e-5).sqrt()),
    "over a dimension": lambda: standardized(
        lambda x: (s := x.view(4, 5)).sub(s.mean(1, keepdim=True) / s.std(1, keepdim=True)).view(20)
    ),
}


@pytest.mark.parametrize("case", DIVIDED)
def test_a_mean_that_is_divided_alone_is_named(case):
    [finding] = found(DIVIDED[case])
    assert (finding.rule, finding.severity) == ("divided_mean", "warning")
    assert "subtracted from them" in finding.message
    assert finding.source is not None


STANDARDIZED = {
    "in parentheses": lambda: standardized(lambda x: (x - x.mean()) / (x.std() + 1e-8)),
    "centered": lambda: standardized(lambda x: x - x.mean()),
    "scaled": lambda: standardized(lambda x: x / x.std() - x.mean() / x.std()),
    "of other values": lambda: standardized(lambda x: x - GOING.mean() / (GOING.std() + 1e-8)),
    "layer norm by hand": lambda: standardized(
        lambda x: (x - x.mean(-1, True)) * (x.var(-1, keepdim=True) + 1e-5).rsqrt()
    ),
}


@pytest.mark.parametrize("case", STANDARDIZED)
def test_what_is_standardized_is_right(case):
    assert found(STANDARDIZED[case]) == []


def clipped(choose):
    choose(ratio(), REWARDS - 0.5).mean().backward()


UNDONE = {
    "the smaller": lambda: clipped(lambda r, a: -torch.min(r, r.clamp(0.8, 1.2)) * a),
    "the larger": lambda: clipped(lambda r, a: torch.maximum(torch.clamp(r, 0.8, 1.2), r) * a),
    "in another form": lambda: clipped(lambda r, a: -torch.minimum(r[:, None], r.clamp(0.8, 1.2)[:, None])[:, 0] * a),
}


@pytest.mark.parametrize("case", UNDONE)
def test_a_bound_that_does_nothing_is_named(case):
    [finding] = found(UNDONE[case])
    assert (finding.rule, finding.severity) == ("undone_clamp", "warning")
    assert (
        f"the {'upper bound of 1.2' if case == 'the larger' else 'lower bound of 0.8'} does nothing" in finding.message
    )


BOUNDED = {
    "with the advantage": lambda: clipped(lambda r, a: -torch.min(r * a, r.clamp(0.8, 1.2) * a)),
    "negated before": lambda: clipped(lambda r, a: torch.max(-a * r, -a * r.clamp(0.8, 1.2))),
    "one bound": lambda: clipped(lambda r, a: -torch.min(r, r.clamp(max=1.2)) * a),
    "of another": lambda: clipped(lambda r, a: -torch.min(r, a.clamp(0.8, 1.2))),
    "values near the old ones": lambda: clipped(
        lambda r, a: torch.max((r - a).square(), (REWARDS + (r - REWARDS).clamp(-0.2, 0.2) - a).square())
    ),
}


@pytest.mark.parametrize("case", BOUNDED)
def test_two_bounds_that_hold_are_right(case):
    assert found(BOUNDED[case]) == []


def guess():
    return POLICY(STATES).gather(1, ACTIONS).squeeze(1)


def later():
    return POLICY(AFTER).amax(1)


TRAINED = {
    "Q-learning": lambda: F.mse_loss(guess(), REWARDS + 0.98 * later() * GOING).backward(),
    "smooth": lambda: F.smooth_l1_loss(guess(), REWARDS + GOING * (0.9 * later())).backward(),
    "by hand": lambda: (REWARDS + 0.99 * VALUE(AFTER)[:, 0] - VALUE(STATES)[:, 0]).pow(2).mean().backward(),
    "the other way round": lambda: F.mse_loss(REWARDS + 0.98 * later(), guess()).backward(),
}


@pytest.mark.parametrize("case", TRAINED)
def test_a_target_that_is_trained_is_a_hint(case):
    findings = found(TRAINED[case])
    assert [(one.rule, one.severity) for one in findings] == [("trained_target", "hint")]
    assert "training moves the target to the guess" in findings[0].message


TARGET = nn.Linear(6, 4)


def physics():
    """One step of an integrator: both sides are of the network, and meant to be."""
    F.mse_loss(VALUE(AFTER), REWARDS[:, None] + 0.01 * VALUE(STATES)).backward()


DETACHED = {
    "detached": lambda: F.mse_loss(guess(), REWARDS + 0.98 * later().detach()).backward(),
    "another network": lambda: F.mse_loss(guess(), REWARDS + 0.98 * TARGET(AFTER).amax(1)).backward(),
    "two views": lambda: F.mse_loss(POLICY(STATES), POLICY(AFTER)).backward(),
    "a cycle": lambda: F.mse_loss(VALUE(STATES), REWARDS[:, None] + VALUE(AFTER)).backward(),
    "an integrator": physics,
    "a residual": lambda: F.mse_loss(STATES[:, :4] + 0.5 * POLICY(STATES), AFTER[:, :4]).backward(),
}


@pytest.mark.parametrize("case", DETACHED)
def test_a_target_that_is_not_is_right(case):
    assert found(DETACHED[case]) == []
