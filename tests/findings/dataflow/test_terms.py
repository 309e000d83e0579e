"""Weights of each sample that are one of their mean: what is named, and right losses."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tests.findings.dataflow.steps import found

X, Y, NET = torch.randn(16, 4), torch.arange(16) % 3, nn.Linear(4, 3)
SPREAD, HALF = nn.Parameter(torch.zeros(())), torch.rand(16, 3)


def entropy(reduction="mean"):
    return F.cross_entropy(NET(X), Y, reduction=reduction)


def focal(mean, gamma=2.0, alpha=None):
    weight = (1 - torch.exp(-mean)) ** gamma
    weight = weight if alpha is None else alpha * weight
    return (weight * mean).mean().backward()


def of_logarithm(mean):
    """As of a logarithm of a probability."""
    logpt = -mean
    return (-((1 - logpt.exp()) ** 2) * logpt).backward()


FOCAL = {
    "by hand": lambda: focal(entropy()),
    "with alpha": lambda: focal(entropy(), 1.5, 0.25),
    "of a logarithm": lambda: of_logarithm(entropy()),
    "of two classes": lambda: focal(F.binary_cross_entropy_with_logits(NET(X), HALF)),
    "the other way round": lambda: (lambda mean: (mean * (1 - (-mean).exp()) ** 2).backward())(entropy()),
}


@pytest.mark.parametrize("case", FOCAL)
def test_a_focal_weight_of_the_mean_is_named(case):
    [finding] = found(FOCAL[case])
    assert (finding.rule, finding.severity) == ("weighted_mean", "warning")
    assert "is computed of the mean of" in finding.message and "targets, and multiplies this mean" in finding.message
    assert finding.source is not None


RIGHT = {
    "of each sample": lambda: focal(entropy("none")),
    "no gamma": lambda: focal(entropy(), 0),
    "one sample": lambda: focal(F.cross_entropy(NET(X[:1]), Y[:1])),
    "a learned weight": lambda: ((-SPREAD).exp() ** 2 * entropy() + SPREAD).backward(),
    "a perplexity": lambda: (entropy() + entropy().exp().detach() * 0).backward(),
    "a square": lambda: (entropy() ** 2).backward(),
    "of another loss": lambda: ((1 - (-F.mse_loss(NET(X), HALF)).exp()) ** 2 * entropy()).backward(),
    "a sum": lambda: (entropy() * entropy("sum")).backward(),
}


@pytest.mark.parametrize("case", RIGHT)
def test_weights_that_are_right_are_not(case):
    assert found(RIGHT[case]) == []
