"""What is normalized over another dimension than it is summed over: what is named, and right steps."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tests.findings.dataflow.steps import found

N, T, D = 6, 5, 8
X, TEXT = torch.randn(N, T, D), torch.randn(N, D)
LAYER, SAID = nn.Linear(D, D), nn.Linear(D, D)


def compared(seen, said=lambda x: F.normalize(x, dim=-1)):
    F.cross_entropy(said(SAID(TEXT)) @ seen(LAYER(X)).T / 0.05, torch.arange(N)).backward()


def attended(dim, other=None):
    """Returns scores of tokens by tokens."""
    q, k = LAYER(X), SAID(X)
    q, k = F.normalize(q, dim=dim), k if other is None else F.normalize(k, dim=other)
    (q @ k.transpose(-2, -1)).softmax(-1).sum().backward()


def by_channels(dim):
    """Compares channels by channels (cross-covariance attention): over tokens."""
    q, k = F.normalize(LAYER(X), dim=dim), F.normalize(SAID(X), dim=dim)
    (q.transpose(-2, -1) @ k).softmax(-1).sum().backward()


WRONG = {
    "by default": lambda: compared(lambda x: F.normalize(x).mean(1)),
    "over the batch": lambda: compared(lambda x: F.normalize(x.mean(1), dim=0)),
    "one side of an attention": lambda: attended(1, -1),
    "by hand": lambda: compared(lambda x: (x / x.norm(dim=1, keepdim=True)).mean(1)),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_compared_over_another_dimension_is_named(case):
    findings = [one for one in found(WRONG[case]) if one.rule == "normalized_dim"]
    assert [one.severity for one in findings] == ["warning"]
    assert f"by a sum over another dimension, of size {D}, over which the others have length 1" in findings[0].message


RIGHT = {
    "features": lambda: compared(lambda x: F.normalize(x, dim=-1).mean(1)),
    "of a mean": lambda: compared(lambda x: F.normalize(x.mean(1))),
    "one side alone": lambda: compared(lambda x: F.normalize(x).mean(1), lambda x: x),
    "attention": lambda: attended(-1, -1),
    "channels": lambda: by_channels(1),
    "a covariance of features": lambda: by_channels(-1),
    "a layer behind it": lambda: SAID(F.normalize(LAYER(X))).sum().backward(),
    "a sum of absolutes": lambda: compared(lambda x: F.normalize(x, p=1).mean(1)),
}


@pytest.mark.parametrize("case", RIGHT)
def test_what_is_compared_over_its_own_dimension_is_right(case):
    assert [one for one in found(RIGHT[case]) if one.rule == "normalized_dim"] == []


def mixture(dim, over=-1, weights=None):
    weights = LAYER(X) if weights is None else weights
    torch.logsumexp(F.log_softmax(weights, dim) - (X - 1).square(), over).mean().backward()


def test_weights_of_a_mixture_over_another_dimension_are_a_hint():
    for step in (lambda: mixture(-2), lambda: mixture(0), lambda: mixture(-1, 1)):
        [finding] = found(step)
        assert (finding.rule, finding.severity) == ("mixture_dim", "hint")
    assert f"over a dimension of size {D}, and logsumexp sums over another one, of size {T}" in finding.message


MIXED = {
    "its own": lambda: mixture(-1),
    "turned": lambda: torch.logsumexp(F.log_softmax(LAYER(X), -1).transpose(1, 2), 1).mean().backward(),
    "a prior of all": lambda: mixture(0, weights=nn.Parameter(torch.zeros(D))),
    "states to states": lambda: (
        torch.logsumexp(F.log_softmax(nn.Parameter(torch.zeros(D, D)), -1) + LAYER(X)[:, 0, :, None], 1)
        .sum()
        .backward()
    ),
    "labels": lambda: F.cross_entropy(LAYER(X[:, 0]), torch.arange(N)).backward(),
}


@pytest.mark.parametrize("case", MIXED)
def test_weights_that_add_up_to_1_are_right(case):
    assert [one for one in found(MIXED[case]) if one.rule == "mixture_dim"] == []


SEEN, CRITIC = torch.randn(N, 3, 8, 8), nn.Sequential(nn.Conv2d(3, 4, 3), nn.Tanh(), nn.Flatten(), nn.Linear(144, 1))


def penalty(norm, x=SEEN, critic=CRITIC, to=1):
    x = x.clone().requires_grad_()
    (slopes,) = torch.autograd.grad(critic(x).sum(), x, create_graph=True)
    (norm(slopes) - to).square().mean().backward()


def test_a_penalty_on_each_pixel_is_named():
    [finding] = found(lambda: penalty(lambda slopes: slopes.norm(2, dim=1)))
    assert (finding.rule, finding.severity) == ("penalty_of_parts", "warning")
    assert f"{[N, 3, 8, 8]} of {N} samples gets 64 norms a sample, over dimension 1" in finding.message


PENALTIES = {
    "of each sample": lambda: penalty(lambda slopes: slopes.flatten(1).norm(2, dim=1)),
    "of all dimensions": lambda: penalty(lambda slopes: slopes.norm(2, dim=(1, 2, 3))),
    "of a vector": lambda: penalty(lambda slopes: slopes.norm(2, dim=1), TEXT, LAYER),
    "of zero": lambda: penalty(lambda slopes: slopes.norm(2, dim=1), to=0),
    "of no gradient": lambda: (CRITIC[0](SEEN).norm(dim=1) - 1).square().mean().backward(),
}


@pytest.mark.parametrize("case", PENALTIES)
def test_penalties_on_samples_are_right(case):
    assert [one for one in found(PENALTIES[case]) if one.rule == "penalty_of_parts"] == []
