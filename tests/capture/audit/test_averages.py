"""Tests what is said of averages of weights in half precision, whose updates rounding takes back."""

import copy

import pytest
import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

import nbkit

UPDATES = {
    "lerp_": lambda kept, now, decay: kept.lerp_(now, 1 - decay),
    "mul_ and add_": lambda kept, now, decay: kept.mul_(decay).add_(now, alpha=1 - decay),
    "copy_": lambda kept, now, decay: kept.copy_(kept * decay + now * (1 - decay)),
    "the weights themselves": lambda kept, now, decay: kept.copy_(now),
}


def trained(average, update, rate=1e-3, *, gives_both=False):
    """The messages of lost_update after four steps of a model with an average, and the share of it that moved."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(32, 64), nn.SiLU(), nn.Linear(64, 32))
    average = average(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate)
    x = torch.randn(64, 32, dtype=next(model.parameters()).dtype)
    states = []
    with nbkit.opaudit(model=[model, average] if gives_both else None) as trace:
        for _ in range(4):
            (model(x) - x.roll(1, -1)).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()
            update(average, model)
            states.append(torch.cat([one.detach().flatten() for one in average.parameters()]))
    found = trace.findings[trace.findings["rule"] == "lost_update"]
    return found["message"].tolist(), (states[0] != states[-1]).float().mean().item()


def by_hand(way, decay):
    @torch.no_grad()
    def update(average, model):
        for kept, now in zip(average.parameters(), model.parameters(), strict=True):
            UPDATES[way](kept, now.to(kept.dtype), decay)

    return update


def copied(dtype):
    return lambda model: copy.deepcopy(model).to(dtype).requires_grad_(False)


@pytest.mark.parametrize("way", ["lerp_", "mul_ and add_", "copy_"])
@pytest.mark.parametrize("gives_both", [False, True], ids=["the model that runs", "both given"])
def test_an_average_in_bfloat16_that_does_not_follow_is_named(way, gives_both):
    messages, moved = trained(copied(torch.bfloat16), by_hand(way, 0.9999), gives_both=gives_both)
    assert moved < 0.01 and len(messages) == 1
    assert messages[0].startswith("The average of all 4 parameters of Sequential does not follow: its updates at ")
    assert "test_averages.py:" in messages[0] and messages[0].endswith(": bfloat16 rounds them back")


def test_so_is_one_in_float16_and_that_of_torch():
    messages, moved = trained(copied(torch.float16), by_hand("lerp_", 0.9999))
    assert moved < 0.05 and "float16 rounds them back" in messages[0]

    def averaged(model):
        made = AveragedModel(model.to(torch.bfloat16), multi_avg_fn=get_ema_multi_avg_fn(0.9999))
        made.update_parameters(model)
        return made

    messages, moved = trained(averaged, lambda average, model: average.update_parameters(model), rate=1e-2)
    assert moved < 0.05 and "does not follow" in messages[0]


@pytest.mark.parametrize(
    ("dtype", "way", "decay"),
    [
        (torch.float32, "lerp_", 0.9999),
        (torch.bfloat16, "lerp_", 0.5),
        (torch.bfloat16, "the weights themselves", 0.9999),
    ],
    ids=["float32", "one that moves", "equal to the weights"],
)
def test_of_an_average_that_follows_nothing_is_said(dtype, way, decay):
    assert trained(copied(dtype), by_hand(way, decay))[0] == []


@pytest.mark.parametrize("runs", [False, True], ids=["kept", "run in each step"])
def test_of_a_cast_of_an_average_in_float32_nothing_is_said(runs):
    exact = []

    @torch.no_grad()
    def update(average, model):
        exact.extend(one.detach().clone() for one in model.parameters() if len(exact) < 4)
        for kept, one, now in zip(average.parameters(), exact, model.parameters(), strict=True):
            kept.copy_(one.lerp_(now, 1e-4))
        if runs:
            average(torch.ones(1, 32, dtype=torch.bfloat16))

    messages, moved = trained(copied(torch.bfloat16), update)
    assert moved < 0.01 and messages == []  # the average moves by less than bfloat16 shows, and not for its rounding


def test_of_one_that_has_nothing_to_follow_nothing_is_said():
    assert trained(copied(torch.bfloat16), by_hand("lerp_", 0.9999), rate=1e-7)[0] == []
