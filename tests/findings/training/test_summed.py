"""Means of micro-batches that add up to one step, and backward passes that keep a graph."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import nbkit

RULES = ("summed_means", "kept_graph")


def audited(loss, after=lambda model: None, passes=4, steps=2, **backward):
    """What opaudit says of steps of so many backward passes, and the gradient of the last."""
    torch.manual_seed(0)
    model = nn.Linear(4, 1)
    optimizer, kept = torch.optim.SGD(model.parameters(), lr=0.01), []
    with nbkit.opaudit() as trace:
        for _ in range(steps):
            optimizer.zero_grad()
            for _ in range(passes):
                value = loss(model(torch.ones(8, 4)), torch.zeros(8, 1))
                value.backward(**backward)
                kept.append(value if backward else value.item())
            after(model)
            optimizer.step()
    findings = trace.findings[trace.findings["rule"].isin(RULES)]
    said = findings["advice"][findings["rule"] == "summed_means"]
    assert said.str.contains("or the learning rate is divided in its place, this is as it should be.").all()
    return list(zip(findings["rule"], findings["severity"], findings["message"], strict=True)), model.weight.grad


SAID = (
    "4 backward passes add up to each step of SGD, and each begins at a mean that is not divided: the gradient is "
    "4 times that of the mean over all of them"
)


@pytest.mark.parametrize("loss", [F.mse_loss, F.l1_loss, lambda x, y: (x - y).square().mean()])
def test_means_that_nothing_divides_are_told(loss):
    told, gradient = audited(loss)
    _, of_whole = audited(lambda x, y: loss(x, y) / 4)
    assert told == [("summed_means", "hint", SAID)]
    assert gradient.abs().sum() > 2 * of_whole.abs().sum()  # four times, but for the steps between


def by_four(model):
    for parameter in model.parameters():
        parameter.grad.div_(4)


@pytest.mark.parametrize(
    "step",
    [
        {"loss": lambda x, y: F.mse_loss(x, y) / 4},
        {"loss": lambda x, y: F.mse_loss(x, y, reduction="sum")},
        {"loss": lambda x, y: F.l1_loss(x, y, reduction="none").sum() / 32},
        {"loss": F.mse_loss, "after": by_four},
        {"loss": F.mse_loss, "passes": 3},
    ],
    ids=["divided", "summed", "own sum", "gradients divided", "three losses"],
)
def test_what_is_divided_or_meant_is_not_told(step):
    assert audited(**step)[0] == []


@pytest.mark.parametrize("set_to_none", [True, False])
def test_passes_of_a_closure_that_clears_what_the_one_before_left_do_not_add_up(set_to_none):
    torch.manual_seed(0)
    model, x, y = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1)), torch.randn(8, 4), torch.randn(8, 1)
    optimizer, passes = torch.optim.LBFGS(model.parameters(), max_iter=6), []

    def closure():
        optimizer.zero_grad(set_to_none=set_to_none)
        loss = F.mse_loss(model(x), y)
        loss.backward()
        passes.append(loss.item())
        return loss

    with nbkit.opaudit() as trace:
        for _ in range(2):
            optimizer.step(closure)
    assert len(passes) > 8
    assert [rule for rule in trace.findings["rule"] if rule in RULES] == []


def test_clipping_is_no_division():
    told, _ = audited(F.mse_loss, after=lambda model: nn.utils.clip_grad_norm_(model.parameters(), 0.1))
    assert told == [("summed_means", "hint", SAID)]


@pytest.mark.filterwarnings("ignore:Using backward.. with create_graph")
def test_a_graph_of_the_gradient_is_told_with_its_line():
    told, _ = audited(lambda x, y: F.mse_loss(x, y) / 4, passes=1, steps=3, create_graph=True)
    ((rule, _, message),) = told
    assert rule == "kept_graph"
    assert ". backward(create_graph=True) gives each gradient a graph, too at " in message
    assert message.endswith(": `value.backward(**backward)`")
    (other,), _ = audited(lambda x, y: F.mse_loss(x, y) / 4, passes=1, steps=3, retain_graph=True)
    assert other[0] == "kept_graph" and "create_graph" not in other[2]
