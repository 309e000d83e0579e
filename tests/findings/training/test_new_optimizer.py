"""Optimizers that are made anew in each step or epoch: what is said, and where that is as it should be."""

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import nbkit

X, Y = torch.linspace(-2, 2, 64).view(8, 8), torch.arange(8) % 3


def adam(parameters):
    return torch.optim.Adam(parameters, 1e-3)


def trained(model, optimizer, batches=1):
    for _ in range(batches):
        optimizer.zero_grad()
        F.cross_entropy(model(X), Y).backward()
        optimizer.step()


def found(epoch):
    """What is found of four epochs, each of which is given the model and its number."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 3))
    with nbkit.opaudit() as trace:
        for number in range(4):
            epoch(model, number)
    return [*trace.findings[trace.findings["rule"] == "new_optimizer"].itertuples()]


@pytest.mark.parametrize(("batches", "severity"), [(1, "warning"), (3, "hint")])
def test_an_optimizer_of_each_epoch_is_told_with_its_line(batches, severity):
    (finding,) = found(lambda model, _: trained(model, adam(model.parameters()), batches))
    assert (finding.severity, finding.count) == (severity, 4)
    assert finding.source_text == "return torch.optim.Adam(parameters, 1e-3)"
    steps = "one step" if batches == 1 else "3 steps"
    assert finding.message == (
        f"Adam is made 4 times over the same parameters, each for {steps}: each time its state is empty, and the "
        "averages of earlier gradients are forgotten"
    )


KEPT = {}


def of_once(model, number):
    trained(model, KEPT.setdefault(id(model), adam(model.parameters())))


def without_memory(model, number):
    trained(model, torch.optim.SGD(model.parameters(), 0.1))


def of_copies(model, number):
    inner = copy.deepcopy(model)
    trained(inner, adam(inner.parameters()), 2)


def of_a_task(model, number):
    before = copy.deepcopy(model.state_dict())
    trained(model, adam(model.parameters()), 2)
    model.load_state_dict(before)


def reptile(model, number):
    before = [one.detach().clone() for one in model.parameters()]
    trained(model, adam(model.parameters()), 2)
    with torch.no_grad():
        for one, was in zip(model.parameters(), before, strict=True):
            one.lerp_(was, 0.5)


def unfrozen(model, number):
    parameters = [*model.parameters()]
    trained(model, adam(parameters[-1 - number :]))


def two_stages(model, number):
    if number % 2 == 0:
        KEPT["stage"] = adam(model.parameters())
    trained(model, KEPT["stage"])


def with_closure(model, number):
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=3)

    def closure():
        optimizer.zero_grad()
        loss = F.cross_entropy(model(X), Y)
        loss.backward()
        return loss

    optimizer.step(closure)


RIGHT = [of_once, without_memory, of_copies, of_a_task, reptile, unfrozen, two_stages, with_closure]


@pytest.mark.parametrize("epoch", RIGHT)
def test_of_optimizers_that_begin_anew_for_a_reason_nothing_is_said(epoch):
    KEPT.clear()
    assert found(epoch) == []


def test_optimizers_are_made_as_before_after_a_recording():
    before = torch.optim.Optimizer.__init__
    found(of_once)
    assert torch.optim.Optimizer.__init__ is before
