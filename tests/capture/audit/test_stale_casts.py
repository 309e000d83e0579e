"""Tests what is said of a training loop inside one block of autocast, whose steps read the first step's casts."""

from contextlib import nullcontext
from functools import partial

import pytest
import torch
from torch import nn

import nbkit

BFLOAT16 = partial(torch.autocast, "cpu", torch.bfloat16)


def trained(outer, inner=nullcontext, *, clears=False, is_frozen=False):
    """The losses of three steps, and the messages about stale casts."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))
    model[0].requires_grad_(not is_frozen)
    optimizer = torch.optim.SGD([one for one in model.parameters() if one.requires_grad], lr=0.1)
    x, losses = torch.randn(4, 8), []
    with nbkit.opaudit() as trace, outer():
        for _ in range(3):
            with inner():
                loss = model(x).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            if clears:
                torch.clear_autocast_cache()
    found = trace.findings[trace.findings["rule"] == "stale_cast"]
    assert trace.parameters["changed_fraction"].gt(0).sum() == (2 if is_frozen else 4)
    return losses, found["message"].tolist()


@pytest.mark.parametrize("inner", [nullcontext, BFLOAT16], ids=["one block", "a block in a block"])
def test_a_loop_in_one_block_reads_the_casts_of_its_first_step(inner):
    losses, found = trained(BFLOAT16, inner)
    assert len(set(losses)) == 1 and len(found) == 1
    assert found[0].startswith(
        "The step reads a cast of all 4 parameters of Sequential from before the optimizer's step"
    )


def test_of_a_frozen_layer_nothing_is_said():
    losses, found = trained(BFLOAT16, is_frozen=True)
    assert len(set(losses)) == 1 and ["a cast of 2 (2 tensors) from" in text for text in found] == [True]


@pytest.mark.parametrize(
    ("outer", "inner", "clears"),
    [
        (nullcontext, BFLOAT16, False),
        (BFLOAT16, nullcontext, True),
        (partial(BFLOAT16, cache_enabled=False), nullcontext, False),
        (nullcontext, nullcontext, False),
    ],
    ids=["a block in each step", "cleared", "no cache", "no autocast"],
)
def test_where_each_step_casts_anew_there_is_no_finding(outer, inner, clears):
    losses, found = trained(outer, inner, clears=clears)
    assert len(set(losses)) == 3 and not found


def test_the_line_of_the_block_is_named():
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with nbkit.opaudit() as trace, torch.autocast("cpu", torch.bfloat16):
        for _ in range(2):
            model(torch.ones(2, 4)).square().mean().backward()
            optimizer.step()
    found = trace.findings[trace.findings["rule"] == "stale_cast"]
    line = test_the_line_of_the_block_is_named.__code__.co_firstlineno + 3
    assert found["source"].str.endswith(f"test_stale_casts.py:{line}").tolist() == [True]
