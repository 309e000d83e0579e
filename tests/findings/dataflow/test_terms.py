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


def penalized(create_graph, mix=lambda loss, penalty: loss + 10 * penalty, of=lambda x: NET(x).sum()):
    x = X.clone().requires_grad_()
    slopes = torch.autograd.grad(of(x), x, create_graph=create_graph)[0]
    mix(entropy(), (slopes.norm(2, dim=1) - 1).square().mean()).backward()


NUMBERS = {
    "a penalty": lambda: penalized(False),
    "weighed before": lambda: penalized(False, lambda loss, penalty: 0.5 * penalty + loss / 2),
    "of curved scores": lambda: penalized(False, of=lambda x: NET(x).tanh().sum()),
}


@pytest.mark.parametrize("case", NUMBERS)
def test_a_penalty_without_a_graph_is_a_hint(case):
    [finding] = found(NUMBERS[case])
    assert (finding.rule, finding.severity) == ("penalty_without_graph", "hint")
    assert "of gradients [16, 4] that have no graph of their own" in finding.message
    assert "1 of the 2 terms that are added have a gradient" in finding.message


def attacked():
    """Trains on samples that a gradient has changed."""
    x = X.clone().requires_grad_()
    slopes = torch.autograd.grad(NET(x).sum(), x)[0]
    (entropy() + F.cross_entropy(NET(X + 0.1 * slopes.sign()), Y)).backward()


def moved():
    """A term of the weights that is only shown, behind a step of the optimizer."""
    net = nn.Linear(4, 3)
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    for _ in range(2):
        optimizer.zero_grad()
        (F.cross_entropy(net(X), Y) + net.weight.detach().square().sum()).backward()
        optimizer.step()


GRAPHS = {
    "create_graph": lambda: penalized(True),
    "an attack": attacked,
    "a weight": lambda: penalized(False, lambda loss, penalty: loss * penalty + entropy()),
    "weights that an optimizer moved": moved,
    "no penalty": lambda: penalized(False, lambda loss, penalty: loss + entropy()),
}


@pytest.mark.parametrize("case", GRAPHS)
def test_gradients_that_train_are_right(case):
    assert found(GRAPHS[case]) == []


CRITIC, MAKER = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1)), nn.Linear(3, 4)
FOR_CRITIC, FOR_MAKER, FOR_NET = (
    torch.optim.SGD(one.parameters(), 0.01) for one in (CRITIC, MAKER, nn.ModuleList([NET, TEACHER]))
)


def adversarial(seen_by_critic, also_critic=True):
    fake = MAKER(HALF)
    judged = CRITIC(seen_by_critic(fake))
    (F.l1_loss(fake, X) + F.mse_loss(judged, torch.ones_like(judged))).backward()
    FOR_MAKER.step()
    FOR_CRITIC.zero_grad()
    if also_critic:
        F.mse_loss(CRITIC(fake.detach()), torch.zeros(16, 1)).backward()
        FOR_CRITIC.step()


def stepped(term, optimizers=(FOR_NET,)):
    (entropy() + term()).backward()
    [optimizer.step() for optimizer in optimizers]


UNTRAINED = {
    "detached in its own turn": (
        lambda: adversarial(torch.detach),
        "hint",
        "ends in 4 parameters, of which the optimizer changes none",
    ),
    "of a critic that nothing trains": (lambda: adversarial(torch.detach, False), "warning", "ends in 4 parameters"),
    "of another model": (lambda: stepped(lambda: CRITIC(X).mean()), "warning", "ends in 4 parameters"),
}


@pytest.mark.parametrize("case", UNTRAINED)
def test_a_term_whose_gradient_reaches_nothing_that_is_changed_is_named(case):
    step, severity, how = UNTRAINED[case]
    found_all = found(step)
    [finding] = [one for one in found_all if one.rule == "untrained_term"]
    assert found_all == [finding]
    assert finding.severity == severity and how in finding.message
    assert finding.source is not None
    assert (finding.op == "aten.detach.default") == ("critic" in case or "detached" in case)


def accumulated():
    """Two backward passes, then both optimizers."""
    (entropy() + TEACHER(X).square().mean()).backward()
    (CRITIC(X).mean() + entropy()).backward()
    FOR_NET.step()
    FOR_CRITIC.step()


def turned(term):
    x = X.clone().requires_grad_()
    stepped(lambda: term(x))


def by_hand():
    """A part of the parameters is changed by hand, the rest by an optimizer."""
    (entropy() + CRITIC(X).mean()).backward()
    FOR_NET.step()
    with torch.no_grad():
        for one in CRITIC.parameters():
            one -= 0.1 * one.grad


TRAINED = {
    "by hand": by_hand,
    "its own turn": lambda: adversarial(lambda fake: fake),
    "of two models": lambda: stepped(lambda: TEACHER(X).square().mean()),
    "of two optimizers": lambda: stepped(lambda: CRITIC(X).mean(), (FOR_NET, FOR_CRITIC)),
    "accumulated": accumulated,
    "no optimizer": lambda: (entropy() + CRITIC(X).mean()).backward(),
    "of an input that is changed by hand": lambda: turned(lambda x: x.square().mean()),
    "checkpointed": lambda: stepped(
        lambda: torch.utils.checkpoint.checkpoint(TEACHER, X.clone().requires_grad_(), use_reentrant=True).mean()
    ),
    "one term": lambda: (CRITIC(X).mean().backward(), FOR_NET.step()),
}


@pytest.mark.parametrize("case", TRAINED)
def test_a_term_that_reaches_what_is_changed_is_right(case):
    assert [one for one in found(TRAINED[case]) if one.rule == "untrained_term"] == []
