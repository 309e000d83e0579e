"""Tests what is said of parameters behind a reentrant checkpoint, none of whose inputs requires a gradient."""

from functools import partial

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint, checkpoint_sequential

import nbkit

REENTRANT = partial(checkpoint, use_reentrant=True)


class Adapter(nn.Module):
    """Adds a small branch to a frozen layer."""

    def __init__(self):
        super().__init__()
        self.base = nn.Linear(8, 8).requires_grad_(False)
        self.down, self.up = nn.Linear(8, 2, bias=False), nn.Linear(2, 8, bias=False)

    def forward(self, x):
        return torch.tanh(self.base(x) + self.up(self.down(x)))


class Model(nn.Module):
    """Runs two adapters in one way or another over frozen embeddings."""

    def __init__(self, through, is_frozen=True):
        super().__init__()
        self.tokens = nn.Embedding(10, 8).requires_grad_(not is_frozen)
        self.blocks, self.head = nn.Sequential(Adapter(), Adapter()), nn.Linear(8, 2)
        self.through = through

    def forward(self, ids):
        return self.head(self.through(self.blocks, self.tokens(ids)))


def each(blocks, x):
    for block in blocks:
        x = REENTRANT(block, x)
    return x


def requiring(blocks, x):
    return each(blocks, x.requires_grad_())


WRONG = {
    "each": each,
    "whole": lambda blocks, x: REENTRANT(blocks, x),
    "a function": lambda blocks, x: REENTRANT(lambda y: blocks(y), x),
    "in a dict, which torch does not look into": lambda blocks, x: REENTRANT(
        lambda given: blocks(given["x"]), {"x": x.requires_grad_()}
    ),
    "the first segment": lambda blocks, x: checkpoint_sequential(blocks, 2, x, use_reentrant=True),
}
RIGHT = {
    "not reentrant": (lambda blocks, x: checkpoint(blocks, x, use_reentrant=False), True),
    "an input that requires a gradient": (requiring, True),
    "embeddings that are trained": (each, False),
    "no checkpoint": (lambda blocks, x: blocks(x), True),
}


def audited(model, steps=2):
    optimizer = torch.optim.SGD([one for one in model.parameters() if one.requires_grad], lr=0.1)
    with nbkit.opaudit() as trace:
        for _ in range(steps):
            model(torch.arange(6)).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()
    gradients = trace.parameters.set_index("name")["gradient"]
    found = trace.findings[trace.findings["rule"] == "no_gradient"]
    return gradients[[name.endswith("weight") and "base" not in name for name in gradients.index]], found


@pytest.mark.filterwarnings("ignore:None of the inputs have requires_grad")
@pytest.mark.parametrize("name", WRONG)
def test_the_checkpoint_is_named_with_its_line_and_what_to_do(name):
    torch.manual_seed(0)
    gradients, found = audited(Model(WRONG[name]))
    # The last segment runs without a checkpoint.
    inside = gradients[gradients.index.str.startswith("blocks.0" if name == "the first segment" else "blocks")]
    [finding] = found.itertuples()
    line = WRONG[name].__code__.co_firstlineno
    assert (inside == "none").all() and finding.severity == "warning" and finding.count == len(inside)
    assert f"{', '.join(inside.index.str[:-7])} get no gradient; they run in" in finding.message
    assert "checkpoint(use_reentrant=True), of which no input requires a gradient, at tests/" in finding.message
    assert line <= int(finding.source.rpartition(":")[2]) <= line + 2 and finding.source in finding.message
    assert "use_reentrant=False" in finding.advice


@pytest.mark.filterwarnings("ignore:None of the inputs have requires_grad")
@pytest.mark.parametrize("name", RIGHT)
def test_of_one_that_gradients_come_through_nothing_is_said(name):
    torch.manual_seed(0)
    through, is_frozen = RIGHT[name]
    gradients, found = audited(Model(through, is_frozen))
    assert not len(found) and (gradients[gradients.index.str.startswith("blocks")] == "finite").all()


def test_a_checkpoint_of_frozen_layers_or_under_no_grad_is_none():
    def frozen(blocks, x):
        with torch.no_grad():
            x = REENTRANT(blocks[0], x)
        return REENTRANT(blocks[1].base, x.requires_grad_())

    _, found = audited(Model(frozen))
    assert "checkpoint(" not in " ".join(found["message"])
