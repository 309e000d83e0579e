"""Gradients that are used twice, or are of another optimizer's loss: what is named, and right steps."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import nbkit

X = torch.randn(8, 5)


class Pair:
    """A generator and a critic with an optimizer each."""

    def __init__(self):
        torch.manual_seed(0)
        self.generator, self.critic = nn.Linear(5, 4), nn.Linear(4, 1)
        self.of_generator = torch.optim.Adam(self.generator.parameters(), 1e-3)
        self.of_critic = torch.optim.Adam(self.critic.parameters(), 1e-3)

    def fool(self):
        F.softplus(-self.critic(self.generator(X))).mean().backward()

    def tell(self):
        F.softplus(self.critic(self.generator(X).detach())).mean().backward()


def findings(step, count=3):
    pair = Pair()
    with nbkit.opaudit([pair.generator, pair.critic]) as trace:
        for _ in range(count):
            step(pair)
    rows = trace.findings[trace.findings["rule"].isin(["repeated_step", "foreign_gradient"])]
    return rows[["rule", "severity"]].to_numpy().tolist()


def step_twice(pair):
    pair.of_critic.zero_grad()
    pair.tell()
    pair.of_critic.step()
    pair.of_critic.step()


def scaled(pair):
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
    pair.of_critic.zero_grad()
    scaler.scale(pair.critic(torch.ones(3, 4)).mean()).backward()
    scaler.step(pair.of_critic)
    pair.of_critic.step()


def the_other_one(pair):
    pair.of_generator.zero_grad()
    pair.fool()
    pair.of_generator.step()
    pair.of_critic.zero_grad()
    pair.tell()
    pair.of_generator.step()


@pytest.mark.parametrize("step", [step_twice, scaled, the_other_one])
def test_a_gradient_that_is_used_twice_is_named(step):
    assert findings(step) == [["repeated_step", "warning"]]


def cleared_too_late(pair):
    pair.fool()
    pair.of_generator.step()
    pair.of_generator.zero_grad()
    pair.tell()
    pair.of_critic.step()
    pair.of_critic.zero_grad()


def kept_in_place(pair):
    """zero_grad() leaves zeros, and one network alone is cleared."""
    pair.of_generator.zero_grad(set_to_none=False)
    pair.fool()
    pair.of_generator.step()
    pair.tell()
    pair.of_critic.step()
    pair.of_critic.zero_grad(set_to_none=False)


def twice_in_turn(pair):
    """Two losses of the generator, each with a step, before the critic's."""
    for _ in range(2):
        pair.of_generator.zero_grad()
        pair.fool()
        pair.of_generator.step()
    pair.tell()
    pair.of_critic.step()
    pair.of_critic.zero_grad()


@pytest.mark.parametrize("step", [cleared_too_late, kept_in_place, twice_in_turn])
def test_a_gradient_of_another_loss_is_a_hint(step):
    assert findings(step) == [["foreign_gradient", "hint"]]


def in_turn(pair):
    for optimizer, loss in ((pair.of_generator, pair.fool), (pair.of_critic, pair.tell)):
        optimizer.zero_grad()
        loss()
        optimizer.step()


def together(pair):
    """One loss, two optimizers."""
    pair.of_generator.zero_grad()
    pair.of_critic.zero_grad()
    pair.fool()
    pair.of_generator.step()
    pair.of_critic.step()


def frozen(pair):
    pair.critic.requires_grad_(False)
    pair.fool()
    pair.of_generator.step()
    pair.critic.requires_grad_(True)
    pair.tell()
    pair.of_critic.step()
    pair.of_generator.zero_grad()
    pair.of_critic.zero_grad()


def summed(pair):
    """Two passes for one step."""
    pair.of_critic.zero_grad()
    pair.tell()
    pair.tell()
    pair.of_critic.step()


def sharpness_aware(pair):
    """Ascends by hand, and takes the gradient there."""
    pair.of_critic.zero_grad()
    pair.tell()
    with torch.no_grad():
        for weight in pair.critic.parameters():
            weight.add_(0.05 * weight.grad)
    pair.of_critic.zero_grad()
    pair.tell()
    pair.of_critic.step()


def by_grad(pair):
    """Gradients are computed by autograd.grad(), and written into the same memory."""
    loss = pair.critic(torch.randn(3, 4)).square().mean()
    for weight, slope in zip(
        pair.critic.parameters(), torch.autograd.grad(loss, [*pair.critic.parameters()]), strict=True
    ):
        weight.grad = slope if weight.grad is None else weight.grad.copy_(slope)
    pair.of_critic.step()


def with_closure(pair):
    optimizer = torch.optim.LBFGS(pair.critic.parameters(), 0.1, max_iter=2)

    def closure():
        optimizer.zero_grad()
        loss = pair.critic(torch.ones(3, 4)).square().mean()
        loss.backward()
        return loss

    optimizer.step(closure)
    optimizer.step(closure)


@pytest.mark.parametrize("step", [in_turn, together, frozen, summed, sharpness_aware, by_grad, with_closure])
def test_gradients_of_their_own_are_right(step):
    assert findings(step) == []
