"""Weights of each sample that are one of their mean, terms that train nothing: what is named, and right losses."""

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


TEACHER = nn.Linear(4, 3)


def taught(soft, weight=0.5):
    (entropy() * 0.5 + soft(NET(X)) * weight).backward()


def divergence(scores, wise):
    return F.kl_div(scores.log_softmax(-1), wise.softmax(-1), reduction="batchmean")


def wise():
    with torch.no_grad():
        return TEACHER(X)


@torch.no_grad()
def shown(scores):
    return (scores.argmax(1) == Y).float().mean()


TRAINS_NOTHING = {
    "the teacher on both sides": (lambda: taught(lambda scores: divergence(wise(), wise())), "kl_div", "no_grad"),
    "detached": (lambda: taught(lambda scores: F.mse_loss(scores.detach(), HALF)), "mse_loss", "behind detach"),
    "of three": (lambda: taught(lambda scores: scores.mean() + F.l1_loss(wise(), HALF), 1), "l1_loss", "2 of the 3"),
}


@pytest.mark.parametrize("case", TRAINS_NOTHING)
def test_a_term_that_trains_nothing_is_a_hint(case):
    step, name, how = TRAINS_NOTHING[case]
    [finding] = found(step)
    assert (finding.rule, finding.severity) == ("constant_term", "hint")
    assert finding.message.startswith(f"the term {name} of the loss trains nothing: it requires no gradient")
    assert how in finding.message


TRAINS = {
    "a teacher": lambda: taught(lambda scores: divergence(scores, wise())),
    "stopped on both sides in turn": lambda: taught(
        lambda scores: F.mse_loss(scores.detach(), TEACHER(X)) + F.mse_loss(scores, TEACHER(X).detach())
    ),
    "a term that is shown": lambda: taught(lambda scores: F.mse_loss(scores, HALF).detach()),
    "a measure that is shown": lambda: taught(shown),
    "a constant": lambda: taught(lambda scores: F.mse_loss(X, X + 1)),
    "a number": lambda: taught(lambda scores: F.mse_loss(scores, HALF).item()),
    "a weight of what is reached": lambda: taught(
        lambda scores: F.mse_loss(scores, HALF) * F.mse_loss(scores.detach(), HALF)
    ),
    "one term": lambda: F.mse_loss(NET(X), wise()).backward(),
}


@pytest.mark.parametrize("case", TRAINS)
def test_terms_that_train_or_are_shown_are_right(case):
    assert found(TRAINS[case]) == []
