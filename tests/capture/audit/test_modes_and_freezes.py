"""Freezes that freeze nothing, dropouts of most values, evaluations in training mode: named, and right steps."""

import copy
import re

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import nbkit

X, Y = torch.randn(16, 6), torch.arange(16) % 3


class Net(nn.Module):
    def __init__(self, **given):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU())
        self.dropout, self.head = nn.Dropout(given.pop("dropout", 0.5)), nn.Linear(8, 3)
        vars(self).update(given)

    def forward(self, x):
        return self.head(self.dropout(self.body(x)))


def found(rule, model, after=lambda: None, steps=3):
    optimizer = torch.optim.SGD([one for one in model.parameters() if one.requires_grad], 0.1)
    with nbkit.opaudit() as trace:
        for _ in range(steps):
            optimizer.zero_grad()
            F.cross_entropy(model(X), Y).backward()
            optimizer.step()
            after()
    rows = trace.findings[trace.findings["rule"] == rule]
    return rows[["severity", "message"]].to_numpy().tolist()


def frozen(freeze, **given):
    model = Net(**given)
    freeze(model)
    return found("ineffective_freeze", model)


def set_all(name, value=False):
    return lambda model: [setattr(one, name, value) for one in model.body.parameters()]


@pytest.mark.parametrize("name", ["require_grad", "requires_gradient", "require_grads"])
def test_a_misspelled_attribute_is_named(name):
    [(severity, message)] = frozen(set_all(name))
    assert severity == "warning"
    assert f"though {name} = False was set for parameters: no attribute that torch knows" in message
    # The bias in front of a batch norm has no gradient but rounding, which moves it on some CPUs alone.
    assert re.match(r"The optimizer trains body\.0(, body\.1 \(4|\.weight, body\.1 \(3) tensors\), though ", message)


def test_an_attribute_of_a_module_is_named():
    [(severity, message)] = frozen(lambda model: setattr(model.head, "requires_grad", False))
    assert severity == "warning"
    assert "trains head (2 tensors)" in message
    assert "though requires_grad = False was set for their module: torch does not look at that" in message


def beside(model):
    """A module whose name begins another one's."""
    model.bod = nn.Identity()
    model.bod.requires_grad = False


FREEZES = {
    "requires_grad_": lambda: frozen(lambda model: model.body.requires_grad_(False)),
    "each parameter": lambda: frozen(set_all("requires_grad")),
    "a flag that is obeyed": lambda: frozen(lambda model: model.requires_grad_(False).head.requires_grad_(True)),
    "a flag of true": lambda: frozen(set_all("require_grad", True)),
    "a flag of its own": lambda: frozen(lambda model: None, is_frozen=False, frozen=False),
    "a flag beside": lambda: frozen(beside),
    "marks of others": lambda: frozen(set_all("sequence_parallel")),
}


@pytest.mark.parametrize("case", FREEZES)
def test_what_freezes_is_right(case):
    assert FREEZES[case]() == []


@pytest.mark.parametrize("share", [0.8, 0.9])
def test_a_dropout_of_most_is_a_hint(share):
    [(severity, message)] = found("heavy_dropout", Net(dropout=share))
    assert severity == "hint"
    assert message == f"The dropout dropout sets {share:g} of the values to 0, and keeps {1 - share:.1f}"


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.7, 1.0])
def test_a_dropout_of_less_is_right(share):
    assert found("heavy_dropout", Net(dropout=share)) == []


def evaluated(evaluate, is_off=False):
    model = Net()

    def after():
        model.train(not is_off)
        with torch.no_grad():
            evaluate(model)
        model.train()

    return found("evaluated_in_training", model, after)


EVALUATIONS = {
    "accuracy": lambda model: (model(X).argmax(-1) == Y).float().mean(),
    "max": lambda model: (model(X).max(1).indices == Y).sum().item(),
    "top two": lambda model: (model(X).topk(2, 1).indices == Y[:, None]).any(1).sum(),
}


@pytest.mark.parametrize("case", EVALUATIONS)
def test_an_evaluation_in_training_mode_is_a_hint(case):
    [(severity, message)] = evaluated(EVALUATIONS[case])
    assert severity == "hint"
    assert message.startswith("Net is evaluated in training mode")
    assert "body.1, dropout are as in training" in message


@pytest.mark.parametrize("case", EVALUATIONS)
def test_an_evaluation_in_eval_mode_is_right(case):
    assert evaluated(EVALUATIONS[case], is_off=True) == []


OTHERS = {
    "statistics taken anew": lambda model: model(X),
    "an action": lambda model: torch.distributions.Categorical(logits=model(X)).sample(),
    "several passes": lambda model: torch.stack([model(X).softmax(-1) for _ in range(3)]).std(0),
    "scores of a teacher": lambda model: model(X).softmax(-1).mean(),
}


@pytest.mark.parametrize("case", OTHERS)
def test_what_is_no_evaluation_is_right(case):
    assert evaluated(OTHERS[case]) == []


def test_the_accuracy_of_what_is_trained_is_right():
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with nbkit.opaudit() as trace:
        scores = model(X)
        F.cross_entropy(scores, Y).backward()
        optimizer.step()
        assert (scores.argmax(-1) == Y).sum() >= 0
    assert "evaluated_in_training" not in set(trace.findings["rule"])


def average(with_buffers):
    model = Net()
    kept = copy.deepcopy(model).requires_grad_(False).eval()

    def after():
        with torch.no_grad():
            for one, other in zip(kept.parameters(), model.parameters(), strict=True):
                one.lerp_(other, 0.1)
            for one, other in zip(kept.buffers(), model.buffers(), strict=True) if with_buffers else ():
                one.copy_(other)
            kept(X)

    return found("unset_statistics", model, after)


def test_an_average_without_statistics_is_a_hint():
    [(severity, message)] = average(with_buffers=False)
    assert severity == "hint"
    assert message.startswith("body.1 of Net")


def test_an_average_with_statistics_is_right():
    assert average(with_buffers=True) == []
