"""Tests what is said of schedulers that step several times for each step of their optimizer, and of right ones."""

import pytest
import torch
from torch import nn
from torch.optim import lr_scheduler as schedulers

import nbkit


def trained(make, after, *, steps=6, passes=1, optimizers=1, skips=0):
    """Messages about schedules of a loop; `after(made, batch)` is called after each backward pass and its step."""
    torch.manual_seed(0)
    models = [nn.Linear(4, 2) for _ in range(optimizers)]
    made = [torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.5) for model in models]
    chosen = [make(optimizer) for optimizer in made]
    with nbkit.opaudit() as trace:
        for batch in range(steps * passes):
            for model, optimizer in zip(models, made, strict=True):
                model(torch.randn(3, 4)).square().mean().backward()
                if (batch + 1) % passes == 0 and batch >= skips:
                    optimizer.step()
                    optimizer.zero_grad()
            after(chosen, batch)
    found = trace.findings[trace.findings["rule"] == "repeated_schedule"]
    return found["message"].tolist()


def cosine(optimizer):
    return schedulers.CosineAnnealingLR(optimizer, T_max=40)


def times(count):
    def step(chosen, batch):
        for scheduler in chosen:
            for _ in range(count):
                scheduler.step()

    return step


def restarts(optimizer):
    return schedulers.CosineAnnealingWarmRestarts(optimizer, T_0=40)


def plateau(optimizer):
    return schedulers.ReduceLROnPlateau(optimizer, patience=9)


def with_loss(count):
    return lambda chosen, batch: [one.step(1.0) for one in chosen for _ in range(count)]


def told_the_epoch(chosen, batch):
    for scheduler in chosen:
        scheduler.step(batch / 6)
        scheduler.step(epoch=batch / 6)


class WarmUp(schedulers.LRScheduler):
    """Warms up by its own rates, then hands on."""

    def __init__(self, optimizer):
        self.inner = cosine(optimizer)
        super().__init__(optimizer)

    def get_lr(self):
        return [rate * min(1, (self.last_epoch + 1) / 3) for rate in self.base_lrs]

    def step(self, epoch=None):
        super().step(epoch)
        self.inner.step()


def one_cycle(optimizer):
    return schedulers.OneCycleLR(optimizer, max_lr=0.1, total_steps=50)


def sequential(optimizer):
    warm = schedulers.LinearLR(optimizer, total_iters=3)
    return schedulers.SequentialLR(optimizer, [warm, cosine(optimizer)], milestones=[3])


def before_restarts(optimizer):
    warm = schedulers.LinearLR(optimizer, total_iters=3)
    return schedulers.SequentialLR(optimizer, [warm, restarts(optimizer)], milestones=[3])


def chained(optimizer):
    return schedulers.ChainedScheduler([cosine(optimizer), schedulers.StepLR(optimizer, 2)])


RIGHT = {
    "each step": (cosine, times(1), {}),
    "each epoch": (cosine, lambda chosen, batch: times(1 if batch % 3 == 2 else 0)(chosen, batch), {}),
    "each batch of an accumulation": (cosine, times(1), {"passes": 3}),
    "two optimizers": (cosine, times(1), {"optimizers": 2}),
    "one cycle": (one_cycle, times(1), {}),
    "sequential": (sequential, times(1), {}),
    "chained": (chained, times(1), {}),
    "warm-up around another": (WarmUp, times(1), {}),
    "wound on when it is resumed": (cosine, lambda chosen, batch: times(5 if batch == 0 else 1)(chosen, batch), {}),
    "restarts": (restarts, times(1), {}),
    "restarts that are told the epoch": (restarts, told_the_epoch, {}),
    "restarts behind another": (before_restarts, times(1), {}),
    "plateau": (plateau, with_loss(1), {}),
    "plateau after each epoch": (plateau, lambda chosen, batch: with_loss(batch % 3 == 2)(chosen, batch), {}),
    "optimizer steps left out at first": (cosine, times(1), {"skips": 2}),
}


@pytest.mark.parametrize("count", (2, 4))
def test_several_steps_in_a_row_are_told_with_their_line(count):
    [message] = trained(cosine, times(count))
    line = times.__code__.co_firstlineno + 4
    assert message.startswith(f"CosineAnnealingLR takes {count} steps in a row for each step of SGD at tests/")
    assert f"test_schedules.py:{line}" in message


OWN_STEP = {
    "CosineAnnealingWarmRestarts": (restarts, times(4), "it restarts after 1 / 4 of its T_0"),
    "ReduceLROnPlateau": (plateau, with_loss(4), "it lowers the rate after 1 / 4 of its patience"),
}


@pytest.mark.parametrize("name", OWN_STEP)
def test_schedulers_with_a_step_of_their_own_are_told_with_what_comes_too_early(name):
    make, after, early = OWN_STEP[name]
    [message] = trained(make, after)
    assert message.startswith(f"{name} takes 4 steps in a row for each step of SGD at tests/")
    assert message.endswith(early)


def test_of_two_optimizers_each_has_its_own():
    assert len(trained(one_cycle, times(2), optimizers=2)) == 2


@pytest.mark.parametrize("name", RIGHT)
def test_of_a_right_schedule_nothing_is_said(name):
    make, after, options = RIGHT[name]
    assert trained(make, after, **options) == []
