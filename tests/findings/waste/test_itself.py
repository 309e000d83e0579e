"""A model that is its own reference: what is named, and two passes that are right."""

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import nbkit


class Speaker(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.norm, self.head = nn.Embedding(32, 16), nn.LayerNorm(16), nn.Linear(16, 32)

    def forward(self, ids):
        return self.head(self.norm(self.table(ids)).relu())


class Both(nn.Module):
    """Holds the models and computes the loss, as a module of a trainer does."""

    def __init__(self, model, reference, loss):
        super().__init__()
        self.model, self.reference, self.loss = model, reference, loss

    def forward(self):
        return self.loss(self.model, self.reference)


IDS = torch.randint(0, 32, (4, 8))


def log_probability(model):
    return model(IDS).log_softmax(-1).gather(-1, IDS[..., None]).squeeze(-1).sum(-1)


def preference(model, reference):
    with torch.no_grad():
        expected = log_probability(reference)
    ratio = log_probability(model) - expected
    return -F.logsigmoid(ratio[:2] - ratio[2:]).mean()


def divergence(model, reference):
    with torch.no_grad():
        expected = reference(IDS)
    return F.kl_div((model(IDS) / 2).log_softmax(-1), (expected / 2).softmax(-1), reduction="batchmean")


def distance(model, reference):
    return F.mse_loss(model(IDS), reference(IDS).detach())


def on_policy(model, reference):
    with torch.no_grad():
        acting = torch.distributions.Categorical(logits=model(IDS))
        actions = acting.sample()
        before = acting.log_prob(actions)
    now = torch.distributions.Categorical(logits=model(IDS)).log_prob(actions)
    return -(now - before).exp().mean()


def with_accuracy(model, reference):
    with torch.no_grad():
        assert (model(IDS).argmax(-1) == IDS).float().mean() >= 0
    return F.cross_entropy(model(IDS).flatten(0, 1), IDS.roll(1).flatten())


def centered(model, reference):
    """Computes an expression of one pass twice."""
    scores = model(IDS)
    return ((scores.exp() + 1) / (scores.exp() + 1).mean()).log().square().mean()


def gated(model, reference):
    """Runs a model again for its gate."""
    return (model(IDS) * model(IDS).sigmoid()).mean()


def found(loss, *, is_same, is_inside=False):
    model = Speaker()
    reference = model if is_same else copy.deepcopy(model)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    run = Both(model, reference, loss) if is_inside else lambda: loss(model, reference)
    with nbkit.opaudit() as trace:
        for _ in range(2):
            optimizer.zero_grad()
            run().backward()
            optimizer.step()
    return trace.findings[trace.findings["rule"] == "compared_with_itself"]


@pytest.mark.parametrize("is_inside", [False, True], ids=["outside", "in a module"])
@pytest.mark.parametrize("loss", [preference, divergence, distance])
def test_a_reference_that_is_the_model_itself_is_a_hint(loss, is_inside):
    (finding,) = found(loss, is_same=True, is_inside=is_inside).itertuples()
    assert finding.severity == "hint"
    assert finding.message.startswith({preference: "sub", divergence: "mul", distance: "mse_loss"}[loss])
    assert finding.message.endswith(
        f" compares two results of {'Both' if is_inside else 'Speaker'} that are equal: two passes of one model, with "
        "the same inputs and parameters, where two models are expected"
    )


@pytest.mark.parametrize("loss", [preference, divergence, distance])
def test_a_copy_as_reference_is_right(loss):
    assert not len(found(loss, is_same=False))


@pytest.mark.parametrize("loss", [on_policy, with_accuracy, centered, gated])
def test_two_passes_that_nothing_compares_and_those_that_act_are_right(loss):
    assert not len(found(loss, is_same=True))


def test_dropout_makes_two_passes_differ():
    model = nn.Sequential(nn.Linear(8, 8), nn.Dropout(), nn.Linear(8, 8))
    x = torch.randn(4, 8)
    with nbkit.opaudit() as trace:
        F.mse_loss(model(x), model(x)).backward()
    assert "compared_with_itself" not in trace.findings["rule"].tolist()
